"""`barnabas cluster`: starts a cluster on this machine, adopts a single broker, shows a running cluster,
unregisters brokers."""

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from barnabas.cli.cluster.connecting import add_cluster_connection
from barnabas.cli.console_process import add_console_port

DESCRIPTION = """\
Start a cluster on this machine, make a single broker the first one of a cluster, show what is going on in a
running cluster, or unregister a broker that will not come back."""
EXAMPLES = """\
  barnabas cluster start --brokers 3 --data-dir ./cluster      a ZooKeeper and three brokers, until Ctrl-C
  barnabas cluster start --data-dir ./cluster --console-port 8080
  barnabas cluster status --bootstrap-server localhost:9092 --watch
  barnabas cluster adopt --data-dir ./data --zookeeper localhost:2181/kafka
  barnabas cluster cluster-id --bootstrap-server localhost:9092
  barnabas cluster list-endpoints --bootstrap-server localhost:9092 --include-fenced-brokers
  barnabas cluster unregister --bootstrap-server localhost:9092 --id 3
"""

Verb = Callable[[argparse.Namespace], int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, prog=parser.prog)

    def verb(name: str, does: str, help: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
        added.set_defaults(does=does)
        return added

    _add_start(verb("start", "starting.start", "start a ZooKeeper and several brokers on this machine"))
    adopt = verb("adopt", "adopting.adopt", "make a single broker the first one of a cluster in ZooKeeper")
    adopt.add_argument("--data-dir", type=Path, required=True, metavar="DIR", help="the broker's directory")
    adopt.add_argument("--zookeeper", required=True, metavar="HOST:PORT/CHROOT", help="where the cluster is")
    adopt.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="the broker's server.properties, for password.encoder.secret; needed if it has secret settings",
    )
    status = verb("status", "status.show", "print brokers and partitions that need attention")
    add_cluster_connection(status)
    status.add_argument("--json", action="store_true", help="print JSON")
    status.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=2.0,
        metavar="SECONDS",
        help="print again every 2 (or SECONDS) seconds, until Ctrl-C",
    )
    id_ = verb("cluster-id", "identity.cluster_id", "print the id of the cluster")
    endpoints = verb("list-endpoints", "identity.list_endpoints", "print the addresses of the brokers")
    unregister = verb("unregister", "identity.unregister", "unregister a broker that will not come back")
    for added in (id_, endpoints, unregister):
        add_cluster_connection(added)
    for added in (id_, endpoints):
        added.add_argument("--json", action="store_true", help="print JSON")
    endpoints.add_argument("--include-fenced-brokers", action="store_true", help="include fenced brokers")
    unregister.add_argument("--id", "-i", type=int, help="the broker")


def _add_start(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--brokers", type=int, default=3, metavar="N", help="how many (default: 3)")
    parser.add_argument("--data-dir", type=Path, required=True, metavar="DIR", help="where all data is")
    parser.add_argument(
        "--port",
        type=int,
        default=9092,
        help="port of the first broker; the others take the next ones; 0 means free ports (default: 9092)",
    )
    parser.add_argument(
        "--ready-file",
        type=Path,
        metavar="FILE",
        help="when all brokers answer, write addresses, process ids and commands to FILE, as JSON",
    )
    parser.add_argument(
        "--zookeeper", metavar="HOST:PORT/CHROOT", help="use this ZooKeeper instead of starting one"
    )
    parser.add_argument("--restart", action="store_true", help="start a process that has died again")
    parser.add_argument(
        "--secure",
        action="store_true",
        help="TLS, passwords and ACLs; certificates and the settings of an admin go to DIR/secure",
    )
    add_console_port(parser)
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of all brokers; may be repeated",
    )


def run(options: argparse.Namespace) -> int:
    module, _, name = options.does.partition(".")
    verb = getattr(import_module(f"barnabas.cli.cluster.{module}"), name)
    return cast(Verb, verb)(options)
