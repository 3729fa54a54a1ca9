"""Where a query begins and ends, looked up at the brokers from what the options say. Runs on the driver."""

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
        """The partitions to read; a list that is young enough is used again."""
        age_max = self._settings["partition.metadata.cache.ttl.ms"] / 1000
        if self._partitions is None or time.monotonic() - self._listed_at >= age_max:
            topics = self._settings.topics
            self._partitions = self._brokers.partitions(topics, missing_allowed=missing_allowed)
            self._listed_at = time.monotonic()
        return self._partitions

    def starts(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._brokers.starts(partitions)

    def ends(self, partitions: Iterable[TopicPartition], known: Mapping[TopicPartition, int]) -> Offsets:
        """The ends of partitions; those that lie before what is known are asked for again, since a leader
        that was just elected may not know its end yet."""
        wanted = list(partitions)
        for _ in range(self._settings["fetchOffset.numRetries"]):
            found = self._ends(wanted)
            if all(found[partition] >= offset for partition, offset in known.items() if partition in found):
                return found
            time.sleep(self._settings["fetchOffset.retryIntervalMs"] / 1000)
        return self._ends(wanted)

    def _ends(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._brokers.ends(partitions, read_committed=self._settings.read_committed)

    # ---- places

    def offsets_at(self, place: Place, partitions: frozenset[TopicPartition], name: str) -> Offsets:
        """The offsets that a place stands for; `name` is the option that the place was given by."""
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
        """With the marks for earliest and latest replaced by what they stand for."""
        first = self.starts([each for each, offset in offsets.items() if offset == EARLIEST])
        last = self._ends([each for each, offset in offsets.items() if offset == LATEST])
        found = {**offsets, **first, **last}
        return {each: offset for each, offset in found.items() if offset >= 0}

    def _at_times(self, place: AtTimes, partitions: frozenset[TopicPartition], name: str) -> Offsets:
        if place.times_ms is not None:
            _check_same(name, place.times_ms, partitions)
        times = place.times_ms or dict.fromkeys(partitions, place.time_ms)
        found = self._brokers.at_times(times)
        missing = sorted(partitions - found.keys())
        if missing and place.is_strict:
            where = ", ".join(f"{each} ({times[each]} ms)" for each in missing)
            raise OptionError(
                f"No record of {where} is as young as the starting time. Set an earlier time, or"
                " startingOffsetsByTimestampStrategy=latest to begin at the end."
            )
        return {**found, **self._ends(missing)}

    def _at_group(self, place: AtGroup, partitions: frozenset[TopicPartition]) -> Offsets:
        committed = {
            each: found.offset for each, found in self._brokers.committed(place.group, partitions).items()
        }
        return {**self.starts(partitions - committed.keys()), **committed}

    # ---- what is gone

    def ranges(self, begin: Offsets, end: Offsets, *, has_new: bool) -> list[Range]:
        """What to read between the two. Records that should be there and are not are a DataLossError, or are
        left out with a warning; `has_new`: partitions without a beginning are new ones."""
        starts = self.starts(self._alive(end))
        ranges = []
        for partition, until in sorted(end.items()):
            first = starts.get(partition)
            if first is None:
                self.lost(f"{partition} does not exist any more.")
                continue
            start = begin.get(partition)
            if start is None and has_new:
                start = 0
            start = first if start is None else start
            if start < first and until > start:
                self.lost(_overtaken(partition, start, min(first, until), is_new=partition not in begin))
                start = first
            if until < start and partition in begin and begin[partition] > until:
                self.lost(
                    f"{partition} ends at offset {until}, before offset {start} where the query stands: the"
                    " topic"
                    " was deleted and made anew, or its log was cut."
                )
            ranges.append(Range(partition, start, until))
        return ranges

    def _alive(self, end: Offsets) -> list[TopicPartition]:
        found = self.partitions(missing_allowed=True)
        return [partition for partition in end if partition in found]

    def check_gone(self, begin: Offsets, partitions: frozenset[TopicPartition]) -> None:
        gone = sorted(begin.keys() - partitions)
        if gone:
            self.lost(f"{', '.join(map(str, gone))} does not exist any more.")

    def lost(self, told: str) -> None:
        if self._settings["failOnDataLoss"]:
            raise DataLossError(
                f"{told} Records may be lost to this query. Set failOnDataLoss=false to read on with what"
                " there is."
            )
        LOGGER.warning("%s The query reads on, because failOnDataLoss is false.", told)


def _overtaken(partition: TopicPartition, start: int, first: int, *, is_new: bool) -> str:
    if is_new:
        return f"{partition} is new to the query, and its records 0 to {first - 1} are gone already."
    return (
        f"Retention overtook the query: it would read {partition} from offset {start} on, and the log holds"
        f" nothing before offset {first} any more."
    )


def _check_same(
    name: str, given: Mapping[TopicPartition, int], partitions: frozenset[TopicPartition]
) -> None:
    if given.keys() != partitions:
        raise OptionError(
            f"{name} must name each partition that is read, and no other: it has {as_text(given)}, and there"
            " are"
            f" {', '.join(map(str, sorted(partitions)))}."
        )
