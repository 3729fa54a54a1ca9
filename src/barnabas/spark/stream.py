"""Streaming queries: one reader runs in its own process on the driver and plans each batch.

Spark calls `latestOffset(start)` after the previous batch, which ended at `start`, is finished. That is when
the offsets are committed for the group of commitOffsets. If the first batch was not finished, a restarted
query calls `initialOffset` again: offsets.py explains how that batch stays the same, and progress.py what the
group stores."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from barnabas.spark.brokers import Brokers, brokers_of
from barnabas.spark.byte_limit import ByteLimit
from barnabas.spark.lookups import Lookups
from barnabas.spark.offsets import (
    RANGES,
    Offsets,
    batch_end,
    batch_start,
    beginning,
    is_beginning,
    offsets_from_json,
    report_of,
)
from barnabas.spark.planning import capped
from barnabas.spark.progress import Progress
from barnabas.spark.ranges import range_rows
from barnabas.spark.settings import ReadSettings
from barnabas.spark.tasks import RangesPartition, read_ranges, tasks_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Pickled and sent to tasks, which call `read`; the connections to brokers stay on the driver."""

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema
        self._driver: _Driver | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_driver": None}

    def _on_driver(self) -> "_Driver":
        if self._driver is None:
            self._driver = _Driver(self._settings)
        return self._driver

    def initialOffset(self) -> dict[str, Any]:
        return self._on_driver().initial_offset()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return self._on_driver().latest_offset(start, has_limits=not isinstance(limit, ReadAllAvailable))

    def getDefaultReadLimit(self) -> ReadLimit:
        """Any limit but ReadAllAvailable means that the limits of the options apply: Spark cannot pass
        several of them."""
        if self._settings["maxBytesPerTrigger"] is not None:
            return ReadMaxBytes(self._settings["maxBytesPerTrigger"])
        if self._settings["maxOffsetsPerTrigger"] is not None:
            return ReadMaxRows(self._settings["maxOffsetsPerTrigger"])
        if self._settings["minOffsetsPerTrigger"] is not None:
            return ReadMinRows(self._settings["minOffsetsPerTrigger"])
        return ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._on_driver().latest_seen()

    def prepareForTriggerAvailableNow(self) -> None:
        self._on_driver().freeze()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self._on_driver().partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        assert isinstance(partition, RangesPartition)
        return read_ranges(self._settings, self._schema, partition.ranges)


class RangeStreamReader(TopicStreamReader):
    """For rangesOnly: a task returns its ranges without reading them."""

    def reportLatestOffset(self) -> dict[str, Any]:
        """Says that Spark does not count records."""
        return {**(super().reportLatestOffset() or {}), RANGES: True}

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        assert isinstance(partition, RangesPartition)
        yield range_rows(partition.ranges)


class _Driver:
    """The part of a stream that asks brokers."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self._brokers: Brokers = brokers_of(settings.client)
        self._lookups = Lookups(self._brokers, settings)
        self._progress = Progress(self._brokers, settings)
        self._beginning: Offsets | None = None
        self._target: Offsets | None = None
        self._seen: Offsets | None = None
        bytes_max = settings["maxBytesPerTrigger"]
        self._byte_limit = None if bytes_max is None else ByteLimit(self._brokers, bytes_max)
        self._batch_bytes: int | None = None
        self._last_trigger = time.monotonic()

    def initial_offset(self) -> dict[str, Any]:
        """The same answer for every call."""
        if self._beginning is None:
            partitions = self._lookups.partitions()
            kept = self._progress.kept_beginning(partitions)
            if kept is None:
                kept = self._lookups.offsets_at(self._settings.start, partitions, "startingOffsets")
                self._progress.keep_beginning(kept)
            self._beginning = kept
        return beginning(self._beginning)

    def freeze(self) -> None:
        """Read nothing that is written after this call (AvailableNow)."""
        self._target = self._lookups.ends(self._lookups.partitions(missing_allowed=True), {})
        self._seen = self._target

    def latest_seen(self) -> dict[str, Any] | None:
        """For Spark's report of a batch."""
        return None if self._seen is None else report_of(self._seen, self._batch_bytes)

    def latest_offset(self, start: dict[str, Any], *, has_limits: bool) -> dict[str, Any]:
        begin = offsets_from_json(start)
        if not is_beginning(start):
            self._progress.done(begin)
        ends = self._ends(begin)
        # New partitions are read from their first record on.
        news = self._lookups.starts(ends.keys() - begin.keys())
        known = {**begin, **news}
        ends = {each: offset for each, offset in ends.items() if each in known}
        if has_limits:
            ends = self._limited(known, ends)
        if self._byte_limit is not None:
            self._batch_bytes = self._byte_limit.bytes(known, ends)
        if ends == begin and not is_beginning(start):
            return start
        self._last_trigger = time.monotonic()
        return batch_end(start, ends)

    def _ends(self, begin: Offsets) -> Offsets:
        if self._target is not None:
            self._lookups.check_gone(begin, frozenset(self._target))
            return dict(self._target)
        self._seen = self._lookups.ends(self._lookups.partitions(missing_allowed=True), begin)
        self._lookups.check_gone(begin, frozenset(self._seen))
        return dict(self._seen)

    def _limited(self, begin: Offsets, ends: Offsets) -> Offsets:
        settings = self._settings
        least = settings["minOffsetsPerTrigger"]
        if least is not None and self._target is None and self._must_wait(begin, ends, least):
            return {each: offset for each, offset in begin.items() if each in ends}
        if settings["maxOffsetsPerTrigger"] is not None:
            ends = capped(begin, ends, settings["maxOffsetsPerTrigger"])
        return ends if self._byte_limit is None else self._byte_limit.ends(begin, ends)

    def _must_wait(self, begin: Offsets, ends: Offsets, least: int) -> bool:
        backlog = sum(max(0, offset - begin[each]) for each, offset in ends.items())
        waited_ms = (time.monotonic() - self._last_trigger) * 1000
        return backlog < least and waited_ms < self._settings["maxTriggerDelay"]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[RangesPartition]:
        begin, until = batch_start(start, end), offsets_from_json(end)
        return tasks_of(self._settings, self._lookups.ranges(begin, until, has_new=True))
