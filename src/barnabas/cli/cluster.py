"""`barnabas cluster`: the cluster's id and its brokers; unregisters a broker."""

import argparse
from collections.abc import Callable

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError
from barnabas.cli.output import print_json
from barnabas.client.admin import Admin
from barnabas.client.errors import UnsupportedVersionError

DESCRIPTION = """\
Print the id of a cluster (cluster-id) or the addresses of its brokers (list-endpoints), or unregister a
broker that will not come back (unregister)."""
EXAMPLES = """\
  barnabas cluster cluster-id --bootstrap-server localhost:9092
  barnabas cluster list-endpoints --bootstrap-server localhost:9092 --include-fenced-brokers
  barnabas cluster unregister --bootstrap-server localhost:9092 --id 3
"""
HEADERS = ("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("command", choices=sorted(COMMANDS), help="what to do")
    server = parser.add_mutually_exclusive_group(required=True)
    add_connection(
        parser,
        server_flags=("--bootstrap-server", "-b"),
        config_flags=("--command-config", "--config", "-c"),
        server_group=server,
    )
    server.add_argument(
        "--bootstrap-controller", "-C", metavar="HOST:PORT", help="refused: every controller is a broker here"
    )
    parser.add_argument("--id", "-i", type=int, help="unregister: the broker")
    parser.add_argument(
        "--include-fenced-brokers", action="store_true", help="list-endpoints: include fenced brokers"
    )
    parser.add_argument("--json", action="store_true", help="cluster-id, list-endpoints: print JSON")


def run(options: argparse.Namespace) -> int:
    if options.bootstrap_server is None:
        raise ToolError(
            "There are no separate controllers: use --bootstrap-server HOST:PORT "
            "with the address of a broker."
        )
    if options.command == "unregister" and options.id is None:
        raise ToolError("unregister needs --id, the number of the broker.")
    with admin_of(options) as admin:
        return COMMANDS[options.command](admin, options)


def cluster_id(admin: Admin, options: argparse.Namespace) -> int:
    id_ = admin.describe_cluster().cluster_id
    if options.json:
        print_json({"clusterId": id_ or None})
    elif id_:
        print(f"Cluster ID: {id_}")
    else:
        print("No cluster ID found. The Kafka version is probably too old.")
    return 0


def list_endpoints(admin: Admin, options: argparse.Namespace) -> int:
    cluster = admin.describe_cluster(include_fenced_brokers=options.include_fenced_brokers)
    nodes = sorted(cluster.nodes)
    if options.json:
        print_json(
            [
                {
                    "id": node.id,
                    "host": node.host,
                    "port": node.port,
                    "rack": node.rack,
                    "state": _state(node.id in cluster.fenced),
                    "endpointType": "broker",
                }
                for node in nodes
            ]
        )
        return 0
    # As in Kafka's tool: all columns but the host have a fixed width.
    width = max((len(node.host) for node in nodes), default=0)
    row = "{:<10} {:<" + str(max(width, 1)) + "} {:<10} {:<10} {:<10} {:<15}"
    print(row.format(*HEADERS))
    for node in nodes:
        state = _state(node.id in cluster.fenced)
        print(row.format(node.id, node.host, node.port, node.rack or "null", state, "broker"))
    return 0


def _state(is_fenced: bool) -> str:
    return "fenced" if is_fenced else "unfenced"


def unregister(admin: Admin, options: argparse.Namespace) -> int:
    try:
        admin.unregister_broker(options.id)
    except UnsupportedVersionError:
        raise ToolError("The target cluster does not support the broker unregistration API.") from None
    print(f"Broker {options.id} is no longer registered.")
    return 0


COMMANDS: dict[str, Callable[[Admin, argparse.Namespace], int]] = {
    "cluster-id": cluster_id,
    "list-endpoints": list_endpoints,
    "unregister": unregister,
}
