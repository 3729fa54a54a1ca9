"""The options of consumer-groups, the checks of their combinations, and the groups and partitions they
name."""

import argparse
import sys
from typing import TYPE_CHECKING

from barnabas.cli.connecting import add_connection
from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.client.types import TopicPartition
from barnabas.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client import Admin

DESCRIPTION = """\
Consumer groups: list them, show their members, committed offsets and lag. The offsets of a group without
members can be reset by seven strategies or from a file; without --execute only the plan is printed."""
EXAMPLES = """\
  barnabas consumer-groups --bootstrap-server localhost:9092 --list --state
  barnabas consumer-groups --bootstrap-server localhost:9092 --describe --group billing
  barnabas consumer-groups --bootstrap-server localhost:9092 --describe --all-groups --members --verbose
  barnabas consumer-groups --bootstrap-server localhost:9092 --group billing --reset-offsets --all-topics \\
      --to-earliest --execute
  barnabas consumer-groups --bootstrap-server localhost:9092 --group billing --reset-offsets \\
      --topic orders:0,1 --to-datetime 2019-06-20T20:00:00.000 --dry-run --export > plan.csv
  barnabas consumer-groups --bootstrap-server localhost:9092 --group billing --reset-offsets \\
      --from-file plan.csv --execute
  barnabas consumer-groups --bootstrap-server localhost:9092 --delete --group billing
"""

ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets", "validate_regex")
STRATEGIES = (
    "to_offset",
    "shift_by",
    "to_datetime",
    "by_duration",
    "to_earliest",
    "to_latest",
    "to_current",
    "from_file",
)
WITHOUT_EXECUTE = (
    "WARN: No action will be performed as the --execute option is missing. Add it to reset the offsets, "
    "or --dry-run to only print the plan."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    address = parser.add_mutually_exclusive_group(required=True)
    add_connection(parser, server_group=address)
    address.add_argument(
        "--validate-regex",
        metavar="REGEX",
        help="check whether brokers accept a regular expression (RE2); needs no broker",
    )
    _add_actions(parser)
    _add_shown(parser)
    _add_strategies(parser)
    parser.add_argument("--group", action="append", default=[], metavar="GROUP", help="may be repeated")
    parser.add_argument("--all-groups", action="store_true", help="all consumer groups")
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC[:N,N...]",
        help="a topic, or some partitions of it; may be repeated",
    )
    parser.add_argument(
        "--all-topics", action="store_true", help="all partitions for which the group has committed offsets"
    )
    parser.add_argument(
        "--timeout", type=int, default=30_000, metavar="MS", help="how long each answer may take (30000)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def _add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_argument_group("actions (exactly one is required)")
    actions.add_argument("--list", action="store_true", help="print the names of all groups")
    actions.add_argument("--describe", action="store_true", help="print offsets and lag, members, or state")
    actions.add_argument("--reset-offsets", action="store_true", help="plan or set new offsets")
    actions.add_argument("--delete", action="store_true", help="delete groups with their offsets")
    actions.add_argument("--delete-offsets", action="store_true", help="delete offsets of topics")


def _add_shown(parser: argparse.ArgumentParser) -> None:
    shown = parser.add_argument_group("what --list and --describe show")
    shown.add_argument("--offsets", action="store_true", help="offsets and lag (the default)")
    shown.add_argument("--members", action="store_true", help="the members and their numbers of partitions")
    shown.add_argument(
        "--state",
        nargs="?",
        const="",
        metavar="STATE,...",
        help="the state of groups; with --list and a value only groups in these states",
    )
    shown.add_argument(
        "--type",
        nargs="?",
        const="",
        metavar="TYPE,...",
        help="with --list: the types of groups; with a value only these types (classic, consumer)",
    )
    shown.add_argument("--verbose", action="store_true", help="also epochs and assignments")


def _add_strategies(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("where --reset-offsets resets to").add_argument
    add("--to-earliest", action="store_true", help="the first record")
    add("--to-latest", action="store_true", help="the end, after the last record")
    add("--to-current", action="store_true", help="the committed offset")
    add("--to-offset", type=int, metavar="N", help="this offset")
    add("--shift-by", type=int, metavar="N", help="N records forward, or back if N is negative")
    add("--to-datetime", metavar="TIME", help="the first record since YYYY-MM-DDThh:mm:ss.sss (UTC)")
    add("--by-duration", metavar="DURATION", help="the first record since PnDTnHnMnS ago")
    add("--from-file", metavar="FILE", help="the offsets in a file, as written by --export")
    add("--dry-run", action="store_true", help="only print the plan (the default)")
    add("--execute", action="store_true", help="set the offsets")
    add("--export", action="store_true", help="print the plan as CSV: topic,partition,offset")


def check(options: argparse.Namespace) -> None:
    given = [name for name in ACTIONS if getattr(options, name)]
    if len(given) != 1:
        raise ToolError(
            "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, "
            "--delete-offsets, --validate-regex."
        )
    if options.describe or options.delete or options.reset_offsets:
        _check_groups(options, given[0])
    if options.describe:
        _check_described(options)
    if options.delete and options.topic:
        raise ToolError("The consumer does not support topic-specific offset deletion from a consumer group.")
    if options.delete_offsets and not (len(options.group) == 1 and options.topic):
        raise ToolError("--delete-offsets needs one --group and at least one --topic.")
    if options.reset_offsets:
        _check_reset(options)


def _check_groups(options: argparse.Namespace, action: str) -> None:
    if bool(options.group) == options.all_groups:
        raise ToolError(
            f"Option --{action.replace('_', '-')} takes one of these options: --group, --all-groups."
        )


def _check_described(options: argparse.Namespace) -> None:
    if [options.members, options.offsets, options.state is not None].count(True) > 1:
        raise ToolError(
            "Option --describe takes at most one of these options: --members, --offsets, --state."
        )
    if options.state:
        raise ToolError("Option --describe does not take a value for --state.")


def _check_reset(options: argparse.Namespace) -> None:
    if options.dry_run and options.execute:
        raise ToolError("Option --reset-offsets only accepts one of --execute and --dry-run.")
    chosen = [name for name in STRATEGIES if getattr(options, name) not in (None, False)]
    if len(chosen) != 1:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in STRATEGIES)
        raise ToolError(f"Option --reset-offsets takes exactly one of these options: {named}.")
    if options.from_file is None and options.all_topics == bool(options.topic):
        raise ToolError("One of the reset scopes should be defined: --all-topics, --topic.")
    if not (options.dry_run or options.execute):
        print(WITHOUT_EXECUTE, file=sys.stderr)


def chosen_groups(options: argparse.Namespace, admin: "Admin") -> list[str]:
    if not options.all_groups:
        return list(dict.fromkeys(options.group))
    return [listing.group_id for listing in admin.list_consumer_groups(timeout=seconds(options))]


def seconds(options: argparse.Namespace) -> float:
    return float(options.timeout / 1000)


def named_partitions(
    admin: "Admin", arguments: list[str], timeout: float
) -> tuple[list[TopicPartition], dict[str, KafkaError]]:
    """The partitions that --topic arguments name (TOPIC or TOPIC:0,1,2), sorted, and the errors of topics."""
    partitions: set[TopicPartition] = set()
    whole = [argument for argument in arguments if ":" not in argument]
    for argument in arguments:
        if ":" in argument:
            partitions.update(_listed(argument))
    described, errors = (
        results_and_errors(lambda: admin.describe_topics(whole, timeout=timeout)) if whole else ({}, {})
    )
    for topic, description in described.items():
        partitions.update(TopicPartition(topic, info.partition) for info in description.partitions)
    return sorted(partitions), errors


def _listed(argument: str) -> list[TopicPartition]:
    topic, _, numbers = argument.partition(":")
    if not topic or ":" in numbers:
        raise ToolError(f"Invalid topic arg '{argument}', expected topic name and partitions.")
    for number in numbers.split(","):
        if not number.strip().isdecimal():
            raise ToolError(f"Invalid partition '{number}' specified in topic arg '{argument}'.")
    return [TopicPartition(topic, int(number)) for number in numbers.split(",")]
