"""`barnabas reassign-partitions`: moves partitions between brokers and directories, as
kafka-reassign-partitions.sh does."""

import argparse
from collections.abc import Callable
from pathlib import Path

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError
from barnabas.cli.reassign_partitions import actions
from barnabas.client.admin import Admin

DESCRIPTION = """\
Move partitions between brokers and directories: propose moves, start them, verify them until they are done,
or cancel them."""
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


# The options that each action accepts, in addition to those it needs.
MAY_HAVE = {
    "generate": ("--disable-rack-aware",),
    "execute": (
        "--additional",
        "--throttle",
        "--replica-alter-log-dirs-throttle",
        "--timeout",
        "--disallow-replication-factor-change",
    ),
    "verify": ("--preserve-throttles",),
    "cancel": ("--preserve-throttles", "--timeout"),
    "list": (),
}
TIMEOUT_MS = 10_000
RUN: dict[str, Callable[[Admin, argparse.Namespace], int]] = {
    "generate": actions.generate,
    "execute": actions.execute,
    "verify": actions.verify,
    "cancel": actions.cancel,
    "list": actions.list_moves,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    server = parser.add_mutually_exclusive_group(required=True)
    add_connection(parser, server_flags=("--bootstrap-server",), server_group=server)
    server.add_argument(
        "--bootstrap-controller", metavar="HOST:PORT", help="refused: every controller is a broker here"
    )
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
        ("--timeout", TIMEOUT_MS, "milliseconds to wait for moves between directories to start"),
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
    if options.bootstrap_server is None:
        raise ToolError(
            "There are no separate controllers: use --bootstrap-server HOST:PORT "
            "with the address of a broker."
        )
    for flag in NEEDS[action]:
        if not _is_given(options, flag):
            raise ToolError(f"--{action} needs {flag}.")
    allowed = {*NEEDS[action], *MAY_HAVE[action]}
    for flag in sorted({*sum(NEEDS.values(), ()), *sum(MAY_HAVE.values(), ())} - allowed):
        if _is_given(options, flag):
            raise ToolError(f"{flag} cannot be used with --{action}.")
    with admin_of(options) as admin:
        return RUN[action](admin, options)


def _is_given(options: argparse.Namespace, flag: str) -> bool:
    value = getattr(options, flag.removeprefix("--").replace("-", "_"))
    return value not in (None, False, -1, TIMEOUT_MS)
