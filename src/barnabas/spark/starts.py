"""Where reading begins and ends, as the options say it: parsed here, looked up by `lookups`. Pure values."""

import json
import re
from typing import Any, NamedTuple

from barnabas.ids import TopicPartition
from barnabas.spark.offsets import Offsets
from barnabas.spark.option_kinds import duration_ms
from barnabas.spark.options import OptionError

# What ListOffsets calls the ends of a log, and the stock connector too.
LATEST, EARLIEST = -1, -2

_BEFORE_END = re.compile(r"-(\d{1,18})")
_SINCE = re.compile(r"now\s*-\s*(.+)")


class AtEnd(NamedTuple):
    """One end of every partition: EARLIEST or LATEST."""

    which: int


class AtOffsets(NamedTuple):
    """An offset per partition; EARLIEST and LATEST stand for the ends."""

    offsets: Offsets


class AtTimes(NamedTuple):
    """The first record at or after a time: `times_ms` per partition, or `time_ms` for all of them. Where
    there is none: the end of the partition, or an error if `is_strict`."""

    times_ms: Offsets | None
    time_ms: int
    is_strict: bool


class Ago(NamedTuple):
    """The first record of the last so many milliseconds; the end where there is none."""

    milliseconds: int


class BeforeEnd(NamedTuple):
    """So many records before the end of each partition."""

    records: int


class AtGroup(NamedTuple):
    """What a group has committed, else EARLIEST."""

    group: str


Place = AtEnd | AtOffsets | AtTimes | Ago | BeforeEnd | AtGroup


def start_of(options: dict[str, Any], default: int, group: str | None) -> Place:
    """Where reading begins; a timestamp wins over timestamps per partition, and those over offsets."""
    is_strict = options["startingOffsetsByTimestampStrategy"] == "error"
    times = _times(options, "starting", is_strict)
    if times is not None:
        return times
    text = options["startingOffsets"]
    if text is None:
        return AtEnd(default)
    if text.lower() == "group":
        if group is None:
            raise OptionError(
                "startingOffsets=group needs the group: name it with commitOffsets or kafka.group.id."
            )
        return AtGroup(group)
    place = _place("startingOffsets", text)
    if default == EARLIEST and (
        place == AtEnd(LATEST) or (isinstance(place, AtOffsets) and LATEST in place.offsets.values())
    ):
        raise OptionError(
            "startingOffsets of a batch query cannot be latest, nor have an offset of -1: nothing would be"
            " read."
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
            "endingOffsets cannot be earliest, nor have an offset of -2: nothing would be read."
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
        raise OptionError(f"{name} has a negative time; times are milliseconds since 1970.")
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
                f"{name} is {text!r}: behind now- stands a time such as 90s, 10m, 2h or 1d."
            ) from None
    if not word.startswith("{"):
        raise OptionError(
            f"{name} is {text!r}, and must be earliest, latest, now-<time>, -<records>, group (for a start),"
            " or"
            ' JSON such as {"orders":{"0":23}}.'
        )
    offsets = partitions_of(name, text)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise OptionError(f"{name} has an offset below -2; -2 stands for earliest and -1 for latest.")
    return AtOffsets(offsets)


def partitions_of(name: str, text: str) -> Offsets:
    """{"topic":{"0":1}} as partitions and numbers; OptionError where it is anything else."""
    wrong = OptionError(f'{name} is {text!r}, and must be JSON such as {{"orders":{{"0":23,"1":345}}}}.')
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
    wrong = OptionError(f'assign is {text!r}, and must be JSON such as {{"orders":[0,1]}}.')
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
