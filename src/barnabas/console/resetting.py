"""Sets the offsets of a group: the plan, which a preview shows, and the change."""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from barnabas.client.admin import OffsetSpec
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.types import TopicPartition
from barnabas.console.calls import Call
from barnabas.console.failures import ApiError, bad_request
from barnabas.console.groups import check_changeable
from barnabas.console.routing import Route
from barnabas.console.shapes import LONG_MAX, Choice, Fields, ListOf, Nullable, Text, Whole

Item = dict[str, Any]
Offsets = dict[TopicPartition, int]

STRATEGIES = ("earliest", "latest", "offset", "time", "shift", "duration")
NEEDS_VALUE = ("offset", "time", "shift", "duration")


async def reset(call: Call) -> Item:
    group, to, value = call.path["group"], call.body["to"], call.body["value"]
    if to in NEEDS_VALUE and value is None:
        raise bad_request(f"to={to} needs a value.")
    check_changeable(call, group)
    await _check_empty(call, group)
    admin = call.workspace.admin
    committed = {each: at.offset for each, at in (await admin.list_consumer_group_offsets(group)).items()}
    partitions = await _partitions(call, committed)
    if not partitions:
        raise bad_request("The group has no offsets yet: name topics whose offsets are to be set.")
    if to == "shift" and not all(each in committed for each in partitions):
        raise bad_request("Only offsets that the group has committed can be shifted.")
    plan = await _plan(call, partitions, committed)
    rows = [
        {"topic": each.topic, "partition": each.partition, "from": committed.get(each), "to": offset}
        for each, offset in sorted(plan.items())
    ]
    command = call.command("consumer-groups", *_options(call, group))
    if call.is_preview:
        return {"command": command, "preview": {"rows": rows}}
    await admin.alter_consumer_group_offsets(group, plan)
    return {"command": command, "rows": rows}


async def _check_empty(call: Call, group: str) -> None:
    """A group with members goes on from its own positions, so a change would be lost or refused."""
    try:
        described = (await call.workspace.admin.describe_consumer_groups([group]))[group]
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        # Setting offsets makes the group.
        return
    if described.members:
        count = len(described.members)
        who = "1 member" if count == 1 else f"{count} members"
        raise ApiError(
            409, "NON_EMPTY_GROUP", f"The group has {who}: stop its consumers first, then reset its offsets."
        )


async def _partitions(call: Call, committed: Offsets) -> list[TopicPartition]:
    if call.body["partitions"] is not None:
        return [TopicPartition(each["topic"], each["partition"]) for each in call.body["partitions"]]
    if call.body["topics"] is None:
        return list(committed)
    described = await call.workspace.admin.describe_topics(call.body["topics"])
    return [
        TopicPartition(name, info.partition) for name, topic in described.items() for info in topic.partitions
    ]


async def _plan(call: Call, partitions: list[TopicPartition], committed: Offsets) -> Offsets:
    """The new offset of each partition, within its log."""
    starts = await _offsets(call, dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    ends = await _offsets(call, dict.fromkeys(partitions, OffsetSpec.LATEST))
    value = call.body["value"]
    now_ms = time.time_ns() // 1_000_000
    targets: dict[str, Callable[[], Awaitable[Offsets] | Offsets]] = {
        "earliest": lambda: starts,
        "latest": lambda: ends,
        "offset": lambda: dict.fromkeys(partitions, value),
        "shift": lambda: {each: committed[each] + value for each in partitions},
        "time": lambda: _at_time(call, ends, value),
        "duration": lambda: _at_time(call, ends, now_ms - value),
    }
    wanted = targets[call.body["to"]]()
    found = wanted if isinstance(wanted, dict) else await wanted
    return {each: min(max(found[each], starts[each]), ends[each]) for each in partitions}


async def _at_time(call: Call, ends: Offsets, time_ms: int) -> Offsets:
    """The first message since then; the end if there is none."""
    found = await _offsets(call, dict.fromkeys(ends, max(0, time_ms)))
    return {each: offset if offset >= 0 else ends[each] for each, offset in found.items()}


async def _offsets(call: Call, specs: dict[TopicPartition, Any]) -> Offsets:
    found = await call.workspace.admin.list_offsets(specs)
    return {partition: listed.offset for partition, listed in found.items()}


def _options(call: Call, group: str) -> list[str]:
    options = ["--reset-offsets", "--group", group]
    numbers: dict[str, list[str]] = {}
    for each in call.body["partitions"] or ():
        numbers.setdefault(each["topic"], []).append(str(each["partition"]))
    for topic, chosen in numbers.items():
        options += ["--topic", f"{topic}:{','.join(chosen)}"]
    if call.body["partitions"] is None:
        for topic in call.body["topics"] or ():
            options += ["--topic", topic]
        if call.body["topics"] is None:
            options.append("--all-topics")
    return [*options, *_target(call.body["to"], call.body["value"]), "--execute"]


def _target(to: str, value: int | None) -> list[str]:
    if to in ("earliest", "latest"):
        return [f"--to-{to}"]
    number = value or 0
    if to == "time":
        # The tool wants a year of four digits.
        moment = datetime.fromtimestamp(min(max(number, 0), 253_402_300_799_000) / 1000, UTC)
        return ["--to-datetime", f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}"]
    if to == "duration":
        return ["--by-duration", f"PT{number / 1000:g}S"]
    return ["--to-offset" if to == "offset" else "--shift-by", str(number)]


ROUTES = (
    Route(
        "POST",
        "/api/groups/{group}/reset",
        reset,
        "Set the offsets of a group without members",
        body={
            "topics": Nullable(ListOf(Text(), "null: all that the group has committed")),
            "partitions": Nullable(
                ListOf(Fields({"topic": Text(), "partition": Whole(most=2**31 - 1)}), "only these")
            ),
            "to": Choice(*STRATEGIES, doc="duration: this long ago, in ms"),
            "value": Nullable(Whole("an offset, a time or a duration in ms", least=-LONG_MAX)),
        },
    ),
)
