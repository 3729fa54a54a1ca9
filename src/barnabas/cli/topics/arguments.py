"""The options of `barnabas topics`, and the checks of their combinations."""

import argparse
import sys
from typing import NamedTuple

from barnabas.cli.connecting import add_connection
from barnabas.cli.failures import ToolError

ACTIONS = {
    "list": "print the names of topics",
    "describe": "print partitions, replicas and settings of topics",
    "create": "create a topic",
    "alter": "add partitions to topics",
    "delete": "delete topics with all their records",
}


class Rule(NamedTuple):
    flag: str
    actions: tuple[str, ...]
    excluded: tuple[str, ...] = ()


_REPORTS = (
    "--under-replicated-partitions",
    "--under-min-isr-partitions",
    "--at-min-isr-partitions",
    "--unavailable-partitions",
)
RULES = (
    Rule("--config", ("create",)),
    Rule("--partitions", ("create", "alter")),
    Rule("--replication-factor", ("create",)),
    Rule("--replica-assignment", ("create", "alter")),
    *(Rule(flag, ("describe",), ("--topics-with-overrides",)) for flag in _REPORTS),
    Rule("--topics-with-overrides", ("describe",)),
    Rule("--if-exists", ("alter", "delete", "describe")),
    Rule("--if-not-exists", ("create",)),
    Rule("--exclude-internal", ("list", "describe")),
    Rule("--json", ("list", "describe")),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    for action, text in ACTIONS.items():
        parser.add_argument(
            f"--{action}", action="append_const", dest="actions", const=action, default=[], help=text
        )
    parser.add_argument("--topic", help="a name; except with --create also a list or a regular expression")
    parser.add_argument("--topic-id", metavar="ID", help="describe the topic with this id")
    parser.add_argument("--json", action="store_true", help="--list and --describe: print JSON")
    _add_shape(parser)
    _add_conditions(parser)


def _add_shape(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--partitions", type=int, metavar="N", help="the number of partitions")
    parser.add_argument("--replication-factor", type=int, metavar="N", help="copies of each partition")
    parser.add_argument(
        "--replica-assignment",
        metavar="ID:ID,ID:ID,...",
        help="the brokers of each partition: commas separate partitions, colons separate brokers",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="--create: a setting of the topic; may be repeated",
    )
    parser.add_argument("--delete-config", metavar="KEY", help="has no effect: use `barnabas configs`")
    parser.add_argument(
        "--partition-size-limit-per-response",
        type=int,
        default=2000,
        metavar="N",
        help="--describe: the maximum number of partitions in one answer of a broker",
    )


def _add_conditions(parser: argparse.ArgumentParser) -> None:
    for flag, text in (
        ("--if-exists", "--alter, --delete, --describe: ignore topics that do not exist"),
        ("--if-not-exists", "--create: ignore a topic that already exists"),
        ("--exclude-internal", "--list, --describe: leave out internal topics"),
        ("--under-replicated-partitions", "--describe: only partitions with replicas that are not in sync"),
        (
            "--under-min-isr-partitions",
            "--describe: only partitions with fewer in-sync replicas than the minimum",
        ),
        (
            "--at-min-isr-partitions",
            "--describe: only partitions with exactly the minimum of in-sync replicas",
        ),
        ("--unavailable-partitions", "--describe: only partitions whose leader is not available"),
        ("--topics-with-overrides", "--describe: only topics with settings that differ from the defaults"),
    ):
        parser.add_argument(flag, action="store_true", help=text)


def check(options: argparse.Namespace) -> str:
    """Check the options. Returns the action."""
    if len(options.actions) != 1:
        raise ToolError(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete."
        )
    (action,) = options.actions
    if options.delete_config:
        print("Warning: --delete-config has no effect; use `barnabas configs --alter`.", file=sys.stderr)
    if action == "alter" and options.config:
        raise ToolError(
            "--config cannot be used with --alter; change settings with "
            "`barnabas configs --topic NAME --alter --add-config KEY=VALUE`."
        )
    for rule in RULES:
        _check_rule(options, rule, action)
    _check_needs(options, action)
    return str(action)


def _given(options: argparse.Namespace, flag: str) -> bool:
    value = getattr(options, flag.removeprefix("--").replace("-", "_"))
    return value not in (None, False, [])


def _check_rule(options: argparse.Namespace, rule: Rule, action: str) -> None:
    if not _given(options, rule.flag):
        return
    if action not in rule.actions:
        raise ToolError(f"{rule.flag} cannot be used with --{action}.")
    for other in rule.excluded:
        if _given(options, other):
            raise ToolError(f"{rule.flag} cannot be used with {other}.")


def _check_needs(options: argparse.Namespace, action: str) -> None:
    if action in ("create", "alter", "delete") and options.topic is None:
        raise ToolError(f"--{action} needs --topic NAME.")
    if action == "alter" and options.partitions is None:
        raise ToolError("--alter needs --partitions N, the new number of partitions.")
    if action == "describe" and options.if_exists and not (options.topic or options.topic_id):
        raise ToolError("--describe --if-exists needs --topic or --topic-id.")
    if action == "create" and options.replica_assignment is not None:
        for flag in ("--partitions", "--replication-factor"):
            if _given(options, flag):
                raise ToolError(f"--replica-assignment cannot be used with {flag}.")
