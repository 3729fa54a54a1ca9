"""`barnabas metadata-quorum`: there is no quorum of controllers; shows what there is instead."""

import argparse

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError
from barnabas.cli.output import print_json

DESCRIPTION = """\
Show who is the controller. Barnabas has no KRaft quorum: a single broker keeps the metadata in a file of its
own, the brokers of a cluster keep them in ZooKeeper, and one of them is elected controller. Controllers are
not added or removed: every broker is a candidate."""
EXAMPLES = """\
  barnabas metadata-quorum --bootstrap-server localhost:9092 describe --status
"""

INSTEAD = (
    "There is no quorum of controllers to change: every broker is a candidate, and ZooKeeper's own quorum "
    "decides. "
    "`barnabas cluster status` shows the brokers, `barnabas metadata dump` the metadata."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, server_flags=("--bootstrap-server", "--bootstrap-controller"))
    parser.add_argument(
        "action", choices=("describe", "add-controller", "remove-controller"), help="describe is what works"
    )
    parser.add_argument("--status", action="store_true", help="a short summary")
    parser.add_argument("--replication", action="store_true", help="one line per broker")
    parser.add_argument("--human-readable", action="store_true", help="accepted; there are no times to print")
    for name in ("--controller-id", "--controller-directory-id"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--dry-run", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    if options.action != "describe":
        raise ToolError(INSTEAD)
    if options.status == options.replication:
        raise ToolError("One of --status or --replication must be specified with describe sub-command")
    with admin_of(options) as admin:
        cluster = admin.describe_cluster(include_fenced_brokers=True)
    controller_id = -1 if cluster.controller is None else cluster.controller.id
    nodes = sorted(cluster.nodes)
    if options.json:
        candidates = [{"id": node.id, "fenced": node.id in cluster.fenced} for node in nodes]
        print_json({"clusterId": cluster.cluster_id, "leaderId": controller_id, "candidates": candidates})
    elif options.status:
        named = ", ".join(f'{{"id": {node.id}, "endpoints": ["{node.host}:{node.port}"]}}' for node in nodes)
        print(f"ClusterId:              {cluster.cluster_id}")
        print(f"LeaderId:               {controller_id}")
        print(f"Candidates:             [{named}]")
        print("Quorum:                 none: the controller is elected in ZooKeeper, or is the only broker")
    else:
        print(f"{'NodeId':10}{'Status':12}Fenced")
        for node in nodes:
            status = "Leader" if node.id == controller_id else "Candidate"
            print(f"{node.id:<10}{status:12}{'yes' if node.id in cluster.fenced else 'no'}")
    return 0
