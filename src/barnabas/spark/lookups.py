"""Where a query begins and ends: the options are turned into offsets with the help of the brokers. Runs on
the driver."""

import logging
import time
from collections.abc import Iterable, Mapping

from barnabas.ids import TopicPartition
from barnabas.spark.brokers import Brokers
from barnabas.spark.fetching import DataLossError
from barnabas.spark.offsets import Offsets, as_text
from barnabas.spark.options import OptionError
from barnabas.spark.planning import Range
from barnabas.spark.settings import ReadSettings
from barnabas.spark.starts import EARLIEST, LATEST, Ago, AtEnd, AtGroup, AtOffsets, AtTimes, BeforeEnd, Place

LOGGER = logging.getLogger(__name__)


class Lookups:
    def __init__(self, brokers: Brokers, settings: ReadSettings) -> None:
        self._brokers = brokers
        self._settings = settings
        self._partitions: frozenset[TopicPartition] | None = None
        self._listed_at = 0.0

    # ---- partitions and their ends

    def partitions(self, *, missing_allowed: bool = False) -> frozenset[TopicPartition]:
        """The partitions to read; a list that is recent enough is used again."""
        age_max = self._settings["partition.metadata.cache.ttl.ms"] / 1000
        if self._partitions is None or time.monotonic() - self._listed_at >= age_max:
            topics = self._settings.topics
            self._partitions = self._brokers.partitions(topics, missing_allowed=missing_allowed)
            self._listed_at = time.monotonic()
        return self._partitions

    def starts(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._brokers.starts(partitions)

    def ends(self, partitions: Iterable[TopicPartition], known: Mapping[TopicPartition, int]) -> Offsets:
        """The ends of partitions. If an end is before a known offset, all are looked up again: a new leader
        may not know its end yet."""
        requested = list(partitions)
        for _ in range(self._settings["fetchOffset.numRetries"]):
            ends = self._ends(requested)
            if all(ends[partition] >= offset for partition, offset in known.items() if partition in ends):
                return ends
            time.sleep(self._settings["fetchOffset.retryIntervalMs"] / 1000)
        return self._ends(requested)

    def _ends(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._brokers.ends(partitions, read_committed=self._settings.read_committed)

    # ---- places

    def offsets_at(self, place: Place, partitions: frozenset[TopicPartition], name: str) -> Offsets:
        """The offsets of a place; `name` is the option in which it was given."""
        if isinstance(place, AtEnd):
            return self._at_ends(dict.fromkeys(partitions, place.which))
        if isinstance(place, AtOffsets):
            _check_same(name, place.offsets, partitions)
            return self._at_ends(place.offsets)
        if isinstance(place, AtTimes):
            return self._at_times(place, partitions, name)
        if isinstance(place, Ago):
            since = int(time.time() * 1000) - place.milliseconds
            return self._at_times(AtTimes(None, since, False), partitions, name)
        if isinstance(place, BeforeEnd):
            starts, ends = self.starts(partitions), self._ends(partitions)
            return {
                each: max(start, ends[each] - place.records) for each, start in starts.items() if each in ends
            }
        return self._at_group(place, partitions)

    def _at_ends(self, offsets: Mapping[TopicPartition, int]) -> Offsets:
        """The offsets with EARLIEST and LATEST replaced by real ones."""
        first = self.starts([each for each, offset in offsets.items() if offset == EARLIEST])
        last = self._ends([each for each, offset in offsets.items() if offset == LATEST])
        resolved = {**offsets, **first, **last}
        return {each: offset for each, offset in resolved.items() if offset >= 0}

    def _at_times(self, place: AtTimes, partitions: frozenset[TopicPartition], name: str) -> Offsets:
        if place.times_ms is not None:
            _check_same(name, place.times_ms, partitions)
        times = place.times_ms or dict.fromkeys(partitions, place.time_ms)
        offsets = self._brokers.at_times(times)
        missing = sorted(partitions - offsets.keys())
        if missing and place.is_strict:
            where = ", ".join(f"{each} ({times[each]} ms)" for each in missing)
            raise OptionError(
                f"There is no record at or after the starting time in {where}. Set an earlier time, or"
                " startingOffsetsByTimestampStrategy=latest to begin at the end."
            )
        return {**offsets, **self._ends(missing)}

    def _at_group(self, place: AtGroup, partitions: frozenset[TopicPartition]) -> Offsets:
        committed = self._brokers.committed(place.group, partitions)
        offsets = {each: commit.offset for each, commit in committed.items()}
        return {**self.starts(partitions - offsets.keys()), **offsets}

    # ---- lost records

    def ranges(self, begin: Offsets, end: Offsets, *, has_new: bool) -> list[Range]:
        """What to read between the two. Missing records are a DataLossError or a warning. `has_new`:
        partitions without a beginning are new."""
        starts = self.starts(self._alive(end))
        ranges = []
        for partition, until in sorted(end.items()):
            first = starts.get(partition)
            if first is None:
                self.report_loss(f"{partition} does not exist any more.")
                continue
            start = begin.get(partition)
            if start is None and has_new:
                start = 0
            start = first if start is None else start
            if start < first and until > start:
                self.report_loss(_deleted(partition, start, min(first, until), is_new=partition not in begin))
                start = first
            if until < start and partition in begin and begin[partition] > until:
                self.report_loss(
                    f"{partition} ends at offset {until}, before offset {start} where the query goes on: the"
                    " topic was deleted and created again, or its log was truncated."
                )
            ranges.append(Range(partition, start, until))
        return ranges

    def _alive(self, end: Offsets) -> list[TopicPartition]:
        existing = self.partitions(missing_allowed=True)
        return [partition for partition in end if partition in existing]

    def check_gone(self, begin: Offsets, partitions: frozenset[TopicPartition]) -> None:
        gone = sorted(begin.keys() - partitions)
        if gone:
            self.report_loss(f"{', '.join(map(str, gone))} does not exist any more.")

    def report_loss(self, text: str) -> None:
        if self._settings["failOnDataLoss"]:
            raise DataLossError(
                f"{text} The query may miss records. Set failOnDataLoss=false to go on without them."
            )
        LOGGER.warning("%s The query goes on, because failOnDataLoss is false.", text)


def _deleted(partition: TopicPartition, start: int, first: int, *, is_new: bool) -> str:
    if is_new:
        return f"{partition} is new to the query, and its records 0 to {first - 1} are already deleted."
    return (
        f"The records of {partition} from offset {start} to {first - 1} were deleted before the query had"
        " read them."
    )


def _check_same(
    name: str, given: Mapping[TopicPartition, int], partitions: frozenset[TopicPartition]
) -> None:
    if given.keys() != partitions:
        raise OptionError(
            f"{name} must name exactly the partitions that are read: it has {as_text(given)}, but the"
            f" partitions are {', '.join(map(str, sorted(partitions)))}."
        )
