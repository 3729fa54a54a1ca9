"""`barnabas acls`: accepts the options of kafka-acls.sh; this release has no authorizer, so it only says
so."""

import argparse

from barnabas.cli.connecting import add_connection
from barnabas.cli.failures import ToolError

DESCRIPTION = """\
Access control lists. This release has no users and no authorizer, so there is nothing to list or change:
the command says so and exits with code 1."""
EXAMPLES = """\
  barnabas acls --bootstrap-server localhost:9092 --list --topic orders
  barnabas acls --bootstrap-server localhost:9092 --add --allow-principal User:alice --operation Read \\
      --topic orders
"""

OPERATIONS = (
    *("Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "DescribeConfigs"),
    *("AlterConfigs", "IdempotentWrite", "CreateTokens", "DescribeTokens", "TwoPhaseCommit", "All"),
)
PATTERN_TYPES = ("any", "match", "literal", "prefixed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    server = parser.add_mutually_exclusive_group(required=True)
    add_connection(parser, server_flags=("--bootstrap-server",), server_group=server)
    server.add_argument("--bootstrap-controller", metavar="HOST:PORT", help="as --bootstrap-server")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--add", action="store_true", help="add ACLs")
    action.add_argument("--remove", action="store_true", help="remove ACLs")
    action.add_argument("--list", action="store_true", help="print ACLs")
    for flag, text in (
        ("--topic", "a topic; * for all"),
        ("--group", "a consumer group; * for all"),
        ("--transactional-id", "a transactional id; * for all"),
        ("--delegation-token", "a delegation token; * for all"),
        ("--user-principal", "a user, as the resource"),
    ):
        parser.add_argument(flag, action="append", default=[], metavar="NAME", help=text)
    for flag, text in (
        ("--principal", "--list: only ACLs of these users, as User:name"),
        ("--allow-principal", "a user to allow, as User:name"),
        ("--deny-principal", "a user to deny, as User:name"),
        ("--allow-host", "a host to allow; * for all"),
        ("--deny-host", "a host to deny; * for all"),
    ):
        parser.add_argument(flag, action="append", default=[], metavar="WHO", help=text)
    parser.add_argument("--cluster", action="store_true", help="the cluster itself")
    parser.add_argument("--operation", action="append", default=[], help=f"one of {', '.join(OPERATIONS)}")
    parser.add_argument(
        "--resource-pattern-type",
        type=str.lower,
        default="literal",
        choices=PATTERN_TYPES,
        help="how names are matched",
    )
    for flag, text in (
        ("--producer", "the ACLs that a producer needs"),
        ("--consumer", "the ACLs that a consumer needs"),
        ("--idempotent", "with --producer: also those for idempotence"),
        ("--force", "do not ask for confirmation"),
    ):
        parser.add_argument(flag, action="store_true", help=text)


def run(options: argparse.Namespace) -> int:
    known = {operation.lower() for operation in OPERATIONS}
    for operation in options.operation:
        if operation.lower() not in known:
            raise ToolError(f"--operation {operation} is not one of {', '.join(OPERATIONS)}.")
    raise ToolError(
        "ACLs need a cluster with users and an authorizer, which this release does not have: "
        "keep brokers on localhost or on a network you trust."
    )
