"""Reads one range of offsets in a task: fetches run ahead in the client's thread while rows are made here."""

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
# A fetch asks for a little more than its records seem to need, lest a short one be left for another fetch.
SPARE = 1.25


class DataLossError(RuntimeError):
    """Records that should have been read are not there any more; says which, and what can be done."""


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
    """`batches()` of one range, as pyarrow.RecordBatch with the columns asked for."""

    def __init__(self, brokers: Brokers, wanted: Range, fetching: Fetching) -> None:
        self._brokers = brokers
        self._range = wanted
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
        for records, behind in self._record_sets():
            # Again with the same set while the columns have no room for all of it.
            while append_records(columns, records, self._range.end) < min(behind, self._range.end):
                yield columns.finish(topic, partition)
        if columns.count:
            yield columns.finish(topic, partition)

    def _record_sets(self) -> Iterator[tuple[RecordSet, int]]:
        """What the fetches answer, and the offset behind each; the next one is under way meanwhile."""
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
            # Spark may stop reading early: a limit, a failed task.
            pending.cancel()

    def _fetch(self, offset: int) -> Future[Fetched]:
        if offset >= self._range.end:
            done: Future[Fetched] = Future()
            done.set_result(Fetched(memoryview(b""), []))
            return done
        fetching = self._fetching
        wanted = int(self._bytes_per_offset * (self._range.end - offset) * SPARE)
        bytes_max = (
            min(fetching.fetch_bytes, max(wanted, FETCH_BYTES_MIN)) if wanted else fetching.fetch_bytes
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
        """Where to read on: the first record there still is, if the query is to go on at all."""
        partition, _, end = self._range
        first = self._brokers.starts([partition]).get(partition, end)
        told = (
            f"{partition} does not hold offset {offset} any more, its first record is {first}: retention or a"
            " deletion overtook the query before it had read it."
        )
        if self._fetching.fail_on_data_loss:
            raise DataLossError(
                f"{told} Keep records for longer (retention.ms, retention.bytes), or read on without them"
                " with"
                " failOnDataLoss=false."
            ) from error
        LOGGER.warning("%s It is left out, because failOnDataLoss is false.", told)
        return end if first < offset else min(first, end)
