"""--list: the names of groups, on request with their types and states."""

import argparse

from barnabas.cli.connecting import admin_of
from barnabas.cli.consumer_groups.options import seconds
from barnabas.cli.failures import ToolError
from barnabas.cli.output import print_json
from barnabas.client.admin.types import ConsumerGroupListing

STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
TYPES = ("Classic", "Consumer")
# As in Kafka's table: the minimum width of the names, and the space after the longest one.
_WIDTH_MIN = 15
_GAP = 10


def list_groups(options: argparse.Namespace) -> int:
    states = _chosen(options.state, STATES, "state")
    types = _chosen(options.type, TYPES, "types")
    with admin_of(options) as admin:
        groups = admin.list_consumer_groups(
            states=states, types=[name.lower() for name in types], timeout=seconds(options)
        )
    if options.json:
        print_json([_json(group) for group in groups])
    elif options.state is None and options.type is None:
        for group in groups:
            print(group.group_id)
    else:
        _print(groups, options.type is not None, options.state is not None)
    return 0


def _chosen(text: str | None, known: tuple[str, ...], what: str) -> list[str]:
    if not text:
        return []
    by_lower = {name.lower(): name for name in known}
    words = [word.strip().lower() for word in text.split(",")]
    if not set(words) <= set(by_lower):
        raise ToolError(f"Invalid {what} list '{text}'. Valid {what.rstrip('s')}s are: {', '.join(known)}.")
    return [by_lower[word] for word in words]


def _print(groups: list[ConsumerGroupListing], with_type: bool, with_state: bool) -> None:
    width = max([_WIDTH_MIN, *(len(group.group_id) for group in groups)]) + _GAP
    rows = [("GROUP", "TYPE", "STATE"), *((group.group_id, _type(group), group.state) for group in groups)]
    for name, kind, state in rows:
        line = f"{name:{width}}"
        line += f" {kind:20}" if with_type else ""
        print(line + (f" {state:20}" if with_state else ""))


def _type(group: ConsumerGroupListing) -> str:
    return group.type.capitalize() or "Unknown"


def _json(group: ConsumerGroupListing) -> dict[str, object]:
    return {"group": group.group_id, "type": _type(group), "state": group.state, "isSimple": group.is_simple}
