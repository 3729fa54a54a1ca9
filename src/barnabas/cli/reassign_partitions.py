"""`barnabas reassign-partitions`: accepts Kafka's options and lists moves; the other actions need a
cluster."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError

DESCRIPTION = """\
Move partitions between brokers and directories. With one broker there is nowhere to move them: every action
except --list says so and exits with code 1."""
EXAMPLES = """\
  barnabas reassign-partitions --bootstrap-server localhost:9092 --generate --broker-list 1,2,3 \\
      --topics-to-move-json-file topics.json
  barnabas reassign-partitions --bootstrap-server localhost:9092 --execute --reassignment-json-file moves.json
  barnabas reassign-partitions --bootstrap-server localhost:9092 --verify --reassignment-json-file moves.json
"""
ACTIONS = {
    "generate": "propose moves",
    "execute": "start moves",
    "verify": "print the progress of moves",
    "cancel": "cancel running moves",
    "list": "print running moves",
}
NEEDS = {
    "generate": ("--topics-to-move-json-file", "--broker-list"),
    "execute": ("--reassignment-json-file",),
    "verify": ("--reassignment-json-file",),
    "cancel": ("--reassignment-json-file",),
    "list": (),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    server = parser.add_mutually_exclusive_group(required=True)
    add_connection(parser, server_flags=("--bootstrap-server",), server_group=server)
    server.add_argument("--bootstrap-controller", metavar="HOST:PORT", help="as --bootstrap-server")
    for name, text in ACTIONS.items():
        parser.add_argument(
            f"--{name}", action="append_const", dest="actions", const=name, default=[], help=text
        )
    parser.add_argument("--reassignment-json-file", type=Path, metavar="FILE", help="the moves, as JSON")
    parser.add_argument("--topics-to-move-json-file", type=Path, metavar="FILE", help="topics, as JSON")
    parser.add_argument("--broker-list", metavar="ID,...", help="--generate: the brokers to move to")
    for flag, default, text in (
        ("--throttle", -1, "bytes per second between brokers"),
        ("--replica-alter-log-dirs-throttle", -1, "bytes per second between directories"),
        ("--timeout", 10_000, "milliseconds to wait for moves between directories to start"),
    ):
        parser.add_argument(flag, type=int, default=default, metavar="N", help=text)
    for flag, text in (
        ("--additional", "in addition to running moves"),
        ("--disable-rack-aware", "--generate: ignore racks"),
        ("--disallow-replication-factor-change", "refuse moves that add or remove replicas"),
        ("--preserve-throttles", "do not change throttles"),
    ):
        parser.add_argument(flag, action="store_true", help=text)


def run(options: argparse.Namespace) -> int:
    if len(options.actions) != 1:
        raise ToolError(
            "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list."
        )
    (action,) = options.actions
    for flag in NEEDS[action]:
        if getattr(options, flag.removeprefix("--").replace("-", "_")) is None:
            raise ToolError(f"--{action} needs {flag}.")
    if action == "list" and options.bootstrap_server is not None:
        return _list(options)
    raise ToolError(
        "Moving partitions needs a cluster of several brokers, which this release does not have: "
        "all partitions are on the one broker."
    )


def _list(options: argparse.Namespace) -> int:
    with admin_of(options) as admin:
        moves = admin.list_partition_reassignments()
    if not moves:
        print("No partition reassignments found.")
        return 0
    print("Current partition reassignments:")
    for partition, move in sorted(moves.items()):
        line = f"{partition.topic}-{partition.partition}: replicas: {_joined(move.replicas)}."
        if move.adding_replicas:
            line += f" adding: {_joined(move.adding_replicas)}."
        if move.removing_replicas:
            line += f" removing: {_joined(move.removing_replicas)}."
        print(line)
    return 0


def _joined(brokers: Sequence[int]) -> str:
    return ",".join(str(broker) for broker in brokers)
