"""What share-groups and streams-groups have in common: Barnabas has no such groups, and says so."""

import argparse
import sys

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")


def add_group_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, server_flags=("--bootstrap-server",))
    for name in ACTIONS:
        parser.add_argument(
            f"--{name}", action="store_true", help="list" if name == "list" else argparse.SUPPRESS
        )
    parser.add_argument("--state", nargs="?", const="", metavar="STATE,...", help=argparse.SUPPRESS)
    for name in ("--group", "--topic", "--timeout", "--to-datetime", "--input-topic"):
        parser.add_argument(name, action="append", default=[], help=argparse.SUPPRESS)
    flags = (
        "all-groups",
        "all-topics",
        "all-input-topics",
        "members",
        "offsets",
        "verbose",
        "execute",
        "dry-run",
    )
    for flag in (*flags, "to-earliest", "to-latest"):
        parser.add_argument(f"--{flag}", action="store_true", help=argparse.SUPPRESS)


def list_or_refuse(options: argparse.Namespace, kind: str, instead: str) -> int:
    """Print the names of groups of this kind: those of a cluster of Kafka, or nothing. Refuse all else."""
    if not options.list:
        raise ToolError(
            f"Barnabas has no {kind} groups, so there is nothing to describe or change. {instead}"
        )
    with admin_of(options) as admin:
        # A broker that does not know the type would refuse to filter by it.
        names = [group.group_id for group in admin.list_groups() if group.type == kind]
    for name in names:
        print(name)
    if not names:
        print(f"There are no {kind} groups: Barnabas does not have them. {instead}", file=sys.stderr)
    return 0
