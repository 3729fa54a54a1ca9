"""Plans for resetting offsets: one function per strategy, each returns new offsets by partition.

An offset outside of the log becomes the nearest one inside. Plans can be written to and read from CSV
files."""

import argparse
import csv
import datetime
import io
import re
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.failures import ToolError
from barnabas.client.admin.types import OffsetSpec
from barnabas.client.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client import Admin

Plan = dict[TopicPartition, int]

_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(?:T(?=[-+\d])(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE,
)


class GroupOffsets(NamedTuple):
    """Offsets that a strategy may look up for a group, with a timeout in seconds for each request."""

    admin: "Admin"
    timeout: float
    group: str

    def listed(self, partitions: Collection[TopicPartition], spec: int) -> Plan:
        offsets = self.admin.list_offsets(dict.fromkeys(partitions, spec), timeout=self.timeout)
        return {partition: offsets[partition].offset for partition in partitions}

    def committed(self) -> Plan:
        offsets = self.admin.list_consumer_group_offsets(self.group, timeout=self.timeout)
        return {partition: position.offset for partition, position in offsets.items()}


Strategy = Callable[[GroupOffsets, Collection[TopicPartition]], Plan]


def strategy_of(options: argparse.Namespace) -> Strategy:
    if options.to_earliest:
        return lambda group, partitions: group.listed(partitions, OffsetSpec.EARLIEST)
    if options.to_latest:
        return lambda group, partitions: group.listed(partitions, OffsetSpec.LATEST)
    if options.to_current:
        return to_current
    if options.to_offset is not None:
        offset: int = options.to_offset
        return lambda group, partitions: within_log(group, dict.fromkeys(partitions, offset))
    if options.shift_by is not None:
        return lambda group, partitions: shifted(group, partitions, options.shift_by)
    if options.to_datetime is not None:
        moment_ms = datetime_ms(options.to_datetime)
    else:
        moment_ms = int(time.time() * 1000) - duration_ms(options.by_duration)
    return lambda group, partitions: at_time(group, partitions, moment_ms)


def to_current(group: GroupOffsets, partitions: Collection[TopicPartition]) -> Plan:
    committed = group.committed()
    without = [partition for partition in partitions if partition not in committed]
    ends = group.listed(without, OffsetSpec.LATEST) if without else {}
    return {partition: committed.get(partition, ends.get(partition, 0)) for partition in partitions}


def shifted(group: GroupOffsets, partitions: Collection[TopicPartition], by: int) -> Plan:
    committed = group.committed()
    for partition in partitions:
        if partition not in committed:
            raise ToolError(
                f"Cannot shift offset for partition {partition} since there is no current committed offset."
            )
    return within_log(group, {partition: committed[partition] + by for partition in partitions})


def at_time(group: GroupOffsets, partitions: Collection[TopicPartition], moment_ms: int) -> Plan:
    offsets = group.listed(partitions, max(0, moment_ms))
    without = [partition for partition, offset in offsets.items() if offset < 0]
    for partition in without:
        print(
            f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty. "
            "Falling back to latest known offset.",
            file=sys.stderr,
        )
    return {**offsets, **(group.listed(without, OffsetSpec.LATEST) if without else {})}


def within_log(group: GroupOffsets, requested: Mapping[TopicPartition, int]) -> Plan:
    starts, ends = (
        group.listed(requested, OffsetSpec.EARLIEST),
        group.listed(requested, OffsetSpec.LATEST),
    )
    plan: Plan = {}
    for partition, offset in requested.items():
        plan[partition] = min(max(offset, starts[partition]), ends[partition])
        if plan[partition] != offset:
            side = "higher than latest" if offset > ends[partition] else "lower than earliest"
            print(
                f"Warn: New offset ({offset}) is {side} offset for topic partition {partition}. "
                f"Value will be set to {plan[partition]}",
                file=sys.stderr,
            )
    return plan


def datetime_ms(text: str) -> int:
    """A time in ISO 8601; without a time zone it is UTC."""
    try:
        if "T" not in text:
            raise ValueError("there is no T between the date and the time")
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise ToolError(
            f"--to-datetime {text!r} is not a time: {error}. Write it as 2019-06-20T20:00:00.000 for UTC, "
            "or with a time zone as 2019-06-20T20:00:00.000+08:00."
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return round(moment.timestamp() * 1000)


def duration_ms(text: str) -> int:
    """PnDTnHnMnS; with a minus sign it means the future."""
    matched = _DURATION.fullmatch(text)
    if matched is None or not any(matched.groups()[1:]):
        raise ToolError(
            f"--by-duration {text!r} is not a duration. Write it as PnDTnHnMnS, such as PT0H30M0S for half "
            "an hour."
        )
    sign, days, hours, minutes, seconds = matched.groups()
    total = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60
    total_ms = total * 1000 + round(float((seconds or "0").replace(",", ".")) * 1000)
    return -total_ms if sign == "-" else total_ms


def plans_as_csv(plans: Mapping[str, Plan], with_group: bool) -> str:
    """One line topic,partition,offset per partition; `with_group` puts the group first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group, plan in plans.items():
        for (topic, partition), offset in plan.items():
            row = [topic, partition, offset]
            writer.writerow([group, *row] if with_group else row)
    return text.getvalue()


def read_plans(file: Path, groups: list[str]) -> dict[str, Plan]:
    """Read what plans_as_csv has written. Lines without a group are for the only group in `groups`."""
    plans: dict[str, Plan] = {}
    with file.open(newline="") as lines:
        for number, row in enumerate(csv.reader(lines), start=1):
            if row:
                group, partition, offset = _entry(row, groups, f"{file}, line {number}")
                plans.setdefault(group, {})[partition] = offset
    return plans


def _entry(row: list[str], groups: list[str], where: str) -> tuple[str, TopicPartition, int]:
    if len(row) == 3 and len(groups) == 1:
        row = [groups[0], *row]
    if len(row) != 4 or not (row[2].strip().isdecimal() and row[3].strip().isdecimal()):
        raise ToolError(
            f"{where}: {','.join(row)!r} is not topic,partition,offset (for one --group) "
            "or group,topic,partition,offset."
        )
    group, topic, partition, offset = (cell.strip() for cell in row)
    return group, TopicPartition(topic, int(partition)), int(offset)
