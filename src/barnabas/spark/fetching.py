"""Reads one range of offsets in a task: the next fetch runs in the client's thread while rows are made
here."""

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

from barnabas.records.arrow import RecordColumns, append_records
from barnabas.records.record_set import RecordSet
from barnabas.spark.brokers import Brokers, Fetched, OffsetsGoneError
from barnabas.spark.planning import Range

LOGGER = logging.getLogger(__name__)
FETCH_BYTES_MIN = 64 * 1024
# A fetch requests a little more than its records seem to need, so that a few records do not need another one.
SPARE = 1.25


class DataLossError(RuntimeError):
    """Records that should have been read are gone; the text says which, and what to do."""


class Fetching(NamedTuple):
    """How a task reads."""

    columns: tuple[str, ...]
    rows_max: int
    bytes_max: int
    fetch_bytes: int
    read_committed: bool
    check_crcs: bool
    fail_on_data_loss: bool
    seconds: float


class RangeReader:
    """Reads one range; `batches()` yields pyarrow.RecordBatch with the requested columns."""

    def __init__(self, brokers: Brokers, to_read: Range, fetching: Fetching) -> None:
        self._brokers = brokers
        self._range = to_read
        self._fetching = fetching
        self._bytes_per_offset = 0.0

    def batches(self) -> Iterator[Any]:
        topic, partition = self._range.partition
        fetching = self._fetching
        columns = RecordColumns(
            fetching.columns,
            rows_max=fetching.rows_max,
            bytes_max=fetching.bytes_max,
            check_crcs=fetching.check_crcs,
        )
        for records, next_offset in self._record_sets():
            # Repeat with the same set until the columns had room for all of it.
            while append_records(columns, records, self._range.end) < min(next_offset, self._range.end):
                yield columns.finish(topic, partition)
        if columns.count:
            yield columns.finish(topic, partition)

    def _record_sets(self) -> Iterator[tuple[RecordSet, int]]:
        """The fetched records, and the offset after them; the next fetch runs meanwhile."""
        offset, end = self._range.start, self._range.end
        pending = self._fetch(offset)
        try:
            while offset < end:
                try:
                    data = pending.result()
                except OffsetsGoneError as error:
                    offset = self._after_loss(offset, error)
                    pending = self._fetch(offset)
                    continue
                records = self._records(data, offset)
                next_offset = records.end_offset()
                if next_offset > offset:
                    self._bytes_per_offset = len(data.records) / (next_offset - offset)
                offset = next_offset
                pending = self._fetch(offset)
                yield records, offset
        finally:
            # Spark may stop reading early, for example because of a limit or a failed task.
            pending.cancel()

    def _fetch(self, offset: int) -> Future[Fetched]:
        if offset >= self._range.end:
            done: Future[Fetched] = Future()
            done.set_result(Fetched(memoryview(b""), []))
            return done
        fetching = self._fetching
        estimate = int(self._bytes_per_offset * (self._range.end - offset) * SPARE)
        bytes_max = (
            min(fetching.fetch_bytes, max(estimate, FETCH_BYTES_MIN)) if estimate else fetching.fetch_bytes
        )
        return self._brokers.fetch(
            self._range.partition,
            offset,
            bytes_max,
            read_committed=fetching.read_committed,
            seconds=fetching.seconds,
        )

    def _records(self, data: Fetched, offset: int) -> RecordSet:
        return RecordSet(
            data.records,
            offset,
            data.aborted,
            read_committed=self._fetching.read_committed,
            check_crcs=self._fetching.check_crcs,
            source=str(self._range.partition),
        )

    def _after_loss(self, offset: int, error: OffsetsGoneError) -> int:
        """Where to go on after records were lost: the first record that exists, if the query may go on."""
        partition, _, end = self._range
        first = self._brokers.starts([partition]).get(partition, end)
        text = (
            f"Offset {offset} of {partition} was deleted before the query had read it; the first record is"
            f" now at offset {first}."
        )
        if self._fetching.fail_on_data_loss:
            raise DataLossError(
                f"{text} Keep records for longer (retention.ms, retention.bytes), or set failOnDataLoss=false"
                " to go on without them."
            ) from error
        LOGGER.warning("%s The query goes on without it, because failOnDataLoss is false.", text)
        return end if first < offset else min(first, end)
