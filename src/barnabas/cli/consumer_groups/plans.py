"""Where offsets are reset to: one function per strategy, each gives new offsets by partition.

A plan is checked against what there is: an offset outside of the log becomes the nearest one inside."""

import argparse
import datetime
import re
import sys
import time
from collections.abc import Callable, Collection, Mapping
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


class Scene(NamedTuple):
    """What a strategy may ask: the cluster, within so many seconds a question, about a group."""

    admin: "Admin"
    timeout: float
    group: str

    def listed(self, partitions: Collection[TopicPartition], spec: int) -> Plan:
        found = self.admin.list_offsets(dict.fromkeys(partitions, spec), timeout=self.timeout)
        return {partition: found[partition].offset for partition in partitions}

    def committed(self) -> Plan:
        found = self.admin.list_consumer_group_offsets(self.group, timeout=self.timeout)
        return {partition: place.offset for partition, place in found.items()}


Strategy = Callable[[Scene, Collection[TopicPartition]], Plan]


def strategy_of(options: argparse.Namespace) -> Strategy:
    if options.to_earliest:
        return lambda scene, partitions: scene.listed(partitions, OffsetSpec.EARLIEST)
    if options.to_latest:
        return lambda scene, partitions: scene.listed(partitions, OffsetSpec.LATEST)
    if options.to_current:
        return to_current
    if options.to_offset is not None:
        offset: int = options.to_offset
        return lambda scene, partitions: within_log(scene, dict.fromkeys(partitions, offset))
    if options.shift_by is not None:
        return lambda scene, partitions: shifted(scene, partitions, options.shift_by)
    if options.to_datetime is not None:
        moment_ms = datetime_ms(options.to_datetime)
    else:
        moment_ms = int(time.time() * 1000) - duration_ms(options.by_duration)
    return lambda scene, partitions: at_time(scene, partitions, moment_ms)


def to_current(scene: Scene, partitions: Collection[TopicPartition]) -> Plan:
    committed = scene.committed()
    without = [partition for partition in partitions if partition not in committed]
    ends = scene.listed(without, OffsetSpec.LATEST) if without else {}
    return {partition: committed.get(partition, ends.get(partition, 0)) for partition in partitions}


def shifted(scene: Scene, partitions: Collection[TopicPartition], by: int) -> Plan:
    committed = scene.committed()
    for partition in partitions:
        if partition not in committed:
            raise ToolError(
                f"Cannot shift offset for partition {partition} since there is no current committed offset."
            )
    return within_log(scene, {partition: committed[partition] + by for partition in partitions})


def at_time(scene: Scene, partitions: Collection[TopicPartition], moment_ms: int) -> Plan:
    found = scene.listed(partitions, max(0, moment_ms))
    without = [partition for partition, offset in found.items() if offset < 0]
    for partition in without:
        print(
            f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty. "
            "Falling back to latest known offset.",
            file=sys.stderr,
        )
    return {**found, **(scene.listed(without, OffsetSpec.LATEST) if without else {})}


def within_log(scene: Scene, wanted: Mapping[TopicPartition, int]) -> Plan:
    starts, ends = scene.listed(wanted, OffsetSpec.EARLIEST), scene.listed(wanted, OffsetSpec.LATEST)
    plan: Plan = {}
    for partition, offset in wanted.items():
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
    """A moment in ISO 8601; without a zone it is UTC."""
    try:
        if "T" not in text:
            raise ValueError("there is no T between date and time")
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise ToolError(
            f"--to-datetime {text!r} is no time: {error}. Write it as 2019-06-20T20:00:00.000, which is UTC, "
            "or with a zone as 2019-06-20T20:00:00.000+08:00."
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return round(moment.timestamp() * 1000)


def duration_ms(text: str) -> int:
    """PnDTnHnMnS; a minus sign looks into the future."""
    matched = _DURATION.fullmatch(text)
    if matched is None or not any(matched.groups()[1:]):
        raise ToolError(
            f"--by-duration {text!r} is no duration. Write it as PnDTnHnMnS, such as PT0H30M0S for half an "
            "hour."
        )
    sign, days, hours, minutes, seconds = matched.groups()
    total = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60
    total_ms = total * 1000 + round(float((seconds or "0").replace(",", ".")) * 1000)
    return -total_ms if sign == "-" else total_ms
