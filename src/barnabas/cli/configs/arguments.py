"""The options of `barnabas configs`."""

import argparse
from pathlib import Path

from barnabas.cli.connecting import add_connection

# Options that give an entity and its type: --topic NAME means --entity-type topics --entity-name NAME.
NAMING = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker_logger": "broker-loggers",
    "ip": "ips",
    "client_metrics": "client-metrics",
    "group": "groups",
}
DEFAULTS = {
    "client_defaults": "clients",
    "user_defaults": "users",
    "broker_defaults": "brokers",
    "ip_defaults": "ips",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    server = parser.add_mutually_exclusive_group(required=True)
    add_connection(parser, server_flags=("--bootstrap-server",), server_group=server)
    server.add_argument(
        "--bootstrap-controller", metavar="HOST:PORT", help="refused: every controller is a broker here"
    )
    for action, text in (("describe", "print settings"), ("alter", "change settings")):
        parser.add_argument(
            f"--{action}", action="append_const", dest="actions", const=action, default=[], help=text
        )
    parser.add_argument("--all", action="store_true", help="--describe: also defaults and static settings")
    parser.add_argument("--json", action="store_true", help="--describe: print JSON")
    _add_changes(parser)
    _add_entities(parser)


def _add_changes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--add-config",
        metavar="KEY=VALUE,...",
        help="settings to set; write a value with commas as [a,b]",
    )
    parser.add_argument("--add-config-file", type=Path, metavar="FILE", help="a properties file of settings")
    parser.add_argument(
        "--delete-config",
        action="append",
        default=[],
        metavar="KEY,...",
        help="settings to reset to their defaults",
    )
    parser.add_argument("--force", action="store_true", help="accepted; there is never a question")


def _add_entities(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--entity-type",
        action="append",
        default=[],
        metavar="TYPE",
        help="topics, brokers, broker-loggers, groups, client-metrics, users, clients or ips",
    )
    parser.add_argument(
        "--entity-name", action="append", dest="entity_names", default=[], metavar="NAME", help="its name"
    )
    parser.add_argument(
        "--entity-default",
        action="append_const",
        dest="entity_names",
        const="",
        help="the defaults of all entities of the type",
    )
    for attribute, kind in NAMING.items():
        flag = f"--{attribute.replace('_', '-')}"
        parser.add_argument(flag, metavar="NAME", help=f"short for --entity-type {kind} --entity-name NAME")
    for attribute, kind in DEFAULTS.items():
        flag = f"--{attribute.replace('_', '-')}"
        parser.add_argument(
            flag, action="store_true", help=f"short for --entity-type {kind} --entity-default"
        )
