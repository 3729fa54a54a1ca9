"""--describe: offsets and lag, members, or state of groups, with a table for each group."""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.cli.connecting import admin_of
from barnabas.cli.consumer_groups.members_view import member_json, member_rows, print_members
from barnabas.cli.consumer_groups.offsets_view import offset_json, offset_rows, print_offsets
from barnabas.cli.consumer_groups.options import chosen_groups, seconds
from barnabas.cli.consumer_groups.states_view import print_states, state_json, state_rows
from barnabas.cli.failures import results_and_errors
from barnabas.cli.output import print_json
from barnabas.client.admin.types import ConsumerGroupDescription
from barnabas.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client import Admin

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class View(NamedTuple):
    """How a group is shown: its rows (with a timeout in seconds), printing them, and a row as JSON."""

    rows: "Callable[[Admin, ConsumerGroupDescription, float], list[Any]]"
    print: Callable[[list[Any], bool], None]
    as_json: Callable[[Any], dict[str, object]]


OFFSETS = View(offset_rows, print_offsets, offset_json)
MEMBERS = View(member_rows, print_members, member_json)
STATES = View(state_rows, print_states, state_json)


def describe(options: argparse.Namespace) -> int:
    view = OFFSETS
    if options.members:
        view = MEMBERS
    elif options.state is not None:
        view = STATES
    timeout = seconds(options)
    with admin_of(options) as admin:
        names = sorted(chosen_groups(options, admin))
        groups, errors = results_and_errors(lambda: admin.describe_consumer_groups(names, timeout=timeout))
        shown = [(groups[name], view.rows(admin, groups[name], timeout)) for name in names if name in groups]
    if options.json:
        print_json([view.as_json(row) for _, rows in shown for row in rows])
    else:
        for group, rows in shown:
            _print_state(group)
            view.print(rows, options.verbose)
    for name, error in errors.items():
        print(f"\nError: {_sentence(name, error)}", file=sys.stderr)
    return 1 if errors else 0


def _sentence(name: str, error: KafkaError) -> str:
    if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
        return f"Consumer group '{name}' does not exist."
    return f"Consumer group '{name}' cannot be described: {error.message}"


def _print_state(group: ConsumerGroupDescription) -> None:
    if group.state == "Empty":
        print(f"\nConsumer group '{group.group_id}' has no active members.", file=sys.stderr)
    elif group.state in REBALANCING:
        print(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.", file=sys.stderr)
