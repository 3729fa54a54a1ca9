"""Where reading begins and ends according to the options. Parsed here; lookups.py finds the offsets."""

import json
import re
from typing import Any, NamedTuple

from barnabas.ids import TopicPartition
from barnabas.spark.offsets import Offsets
from barnabas.spark.option_kinds import duration_ms
from barnabas.spark.options import OptionError

# The numbers for the ends of a log in ListOffsets and in Spark's Kafka connector.
LATEST, EARLIEST = -1, -2

_BEFORE_END = re.compile(r"-(\d{1,18})")
_SINCE = re.compile(r"now\s*-\s*(.+)")


class AtEnd(NamedTuple):
    """One end of every partition: EARLIEST or LATEST."""

    which: int


class AtOffsets(NamedTuple):
    """An offset for each partition; EARLIEST and LATEST mean its ends."""

    offsets: Offsets


class AtTimes(NamedTuple):
    """The first record at or after a time: `times_ms` for each partition, or `time_ms` for all. If there is
    no such record: the end of the partition, or an error if `is_strict`."""

    times_ms: Offsets | None
    time_ms: int
    is_strict: bool


class Ago(NamedTuple):
    """The first record of the last `milliseconds`; the end of the partition if there is none."""

    milliseconds: int


class BeforeEnd(NamedTuple):
    """This many records before the end of each partition."""

    records: int


class AtGroup(NamedTuple):
    """The committed offsets of a group, otherwise EARLIEST."""

    group: str


Place = AtEnd | AtOffsets | AtTimes | Ago | BeforeEnd | AtGroup


def start_of(options: dict[str, Any], default: int, group: str | None) -> Place:
    """Where reading begins. One timestamp overrides timestamps per partition, and those override offsets."""
    is_strict = options["startingOffsetsByTimestampStrategy"] == "error"
    times = _times(options, "starting", is_strict)
    if times is not None:
        return times
    text = options["startingOffsets"]
    if text is None:
        return AtEnd(default)
    if text.lower() == "group":
        if group is None:
            raise OptionError("startingOffsets=group needs a group: set commitOffsets or kafka.group.id.")
        return AtGroup(group)
    place = _place("startingOffsets", text)
    if default == EARLIEST and (
        place == AtEnd(LATEST) or (isinstance(place, AtOffsets) and LATEST in place.offsets.values())
    ):
        raise OptionError(
            "startingOffsets of a batch query must not be latest and must not contain -1, because nothing"
            " would be read."
        )
    return place


def end_of(options: dict[str, Any]) -> Place:
    """Where a batch ends."""
    times = _times(options, "ending", is_strict=False)
    if times is not None:
        return times
    place = _place("endingOffsets", options["endingOffsets"])
    if place == AtEnd(EARLIEST) or (isinstance(place, AtOffsets) and EARLIEST in place.offsets.values()):
        raise OptionError(
            "endingOffsets must not be earliest and must not contain -2, because nothing would be read."
        )
    return place


def _times(options: dict[str, Any], side: str, is_strict: bool) -> AtTimes | None:
    time_ms = options[f"{side}Timestamp"]
    if time_ms is not None:
        return AtTimes(None, time_ms, is_strict)
    name = f"{side}OffsetsByTimestamp"
    text = options[name]
    if text is None:
        return None
    times = partitions_of(name, text)
    if any(each < 0 for each in times.values()):
        raise OptionError(f"{name} has a negative time; give milliseconds since 1970.")
    return AtTimes(times, 0, is_strict)


def _place(name: str, text: str) -> Place:
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return AtEnd(EARLIEST if word == "earliest" else LATEST)
    if match := _BEFORE_END.fullmatch(word):
        return BeforeEnd(int(match[1]))
    if match := _SINCE.fullmatch(word):
        try:
            return Ago(duration_ms(match[1]))
        except ValueError:
            raise OptionError(
                f'{name} is {text!r}, but "now-" must be followed by a duration such as 90s, 10m, 2h or 1d.'
            ) from None
    if not word.startswith("{"):
        raise OptionError(
            f"{name} is {text!r}, but must be earliest, latest, now-<duration>, -<records>, group (only for"
            ' startingOffsets), or JSON such as {"orders":{"0":23}}.'
        )
    offsets = partitions_of(name, text)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise OptionError(f"{name} has an offset below -2; use -2 for earliest and -1 for latest.")
    return AtOffsets(offsets)


def partitions_of(name: str, text: str) -> Offsets:
    """{"topic":{"0":1}} as partitions and numbers; OptionError if it is anything else."""
    wrong = OptionError(f'{name} is {text!r}, but must be JSON such as {{"orders":{{"0":23,"1":345}}}}.')
    try:
        document = json.loads(text)
        if not isinstance(document, dict):
            raise wrong
        numbers = {
            TopicPartition(topic, int(partition)): number
            for topic, partitions in document.items()
            for partition, number in partitions.items()
        }
    except (ValueError, AttributeError):
        raise wrong from None
    if not numbers or not all(type(number) is int for number in numbers.values()):
        raise wrong
    return numbers


def assigned_of(text: str) -> frozenset[TopicPartition]:
    """{"topic":[0,1]} as partitions."""
    wrong = OptionError(f'assign is {text!r}, but must be JSON such as {{"orders":[0,1]}}.')
    try:
        document = json.loads(text)
        partitions = frozenset(
            TopicPartition(topic, number) for topic, numbers in document.items() for number in numbers
        )
    except (ValueError, AttributeError, TypeError):
        raise wrong from None
    if not partitions or not all(type(number) is int and number >= 0 for _, number in partitions):
        raise wrong
    return partitions
