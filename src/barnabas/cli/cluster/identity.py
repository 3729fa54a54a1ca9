"""The cluster's id and its brokers; unregisters a broker."""

import argparse

from barnabas.cli.cluster.connecting import admin_of_cluster
from barnabas.cli.failures import ToolError
from barnabas.cli.output import print_json
from barnabas.client.errors import UnsupportedVersionError

HEADERS = ("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")


def cluster_id(options: argparse.Namespace) -> int:
    with admin_of_cluster(options) as admin:
        id_ = admin.describe_cluster().cluster_id
    if options.json:
        print_json({"clusterId": id_ or None})
    elif id_:
        print(f"Cluster ID: {id_}")
    else:
        print("No cluster ID found. The Kafka version is probably too old.")
    return 0


def list_endpoints(options: argparse.Namespace) -> int:
    with admin_of_cluster(options) as admin:
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


def unregister(options: argparse.Namespace) -> int:
    if options.id is None:
        raise ToolError("unregister needs --id, the number of the broker.")
    with admin_of_cluster(options) as admin:
        try:
            admin.unregister_broker(options.id)
        except UnsupportedVersionError:
            raise ToolError("The target cluster does not support the broker unregistration API.") from None
    print(f"Broker {options.id} is no longer registered.")
    return 0
