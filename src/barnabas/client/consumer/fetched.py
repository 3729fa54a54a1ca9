"""The fetched batches of one partition; records are decoded as they are taken."""

from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.client.errors import ErrorCode, KafkaError, SerializationError
from barnabas.client.types import TopicPartition
from barnabas.kernels.record_decode import BatchCursor, ConsumerRecord
from barnabas.records.arrow import RecordColumns, append_records
from barnabas.records.record_set import OpenBatch, RecordSet
from barnabas.wire.messages.fetch import AbortedTransaction

Deserializer = Callable[[str, bytes | None], Any]


class Reading(NamedTuple):
    """How records are read: the two deserializers, and the consumer's settings."""

    key_deserializer: Deserializer | None
    value_deserializer: Deserializer | None
    check_crcs: bool = True
    read_committed: bool = False


class Fetched:
    """Call `take` until `is_done`; `next_offset` is the offset of the next record."""

    def __init__(
        self,
        partition: TopicPartition,
        data: memoryview,
        offset: int,
        aborted: list[AbortedTransaction] | None,
        reading: Reading,
    ) -> None:
        self._partition = partition
        self._reading = reading
        self._records = RecordSet(
            data,
            offset,
            [(each.producer_id, each.first_offset) for each in aborted or ()],
            read_committed=reading.read_committed,
            check_crcs=reading.check_crcs,
            source=str(partition),
        )
        self._cursor = BatchCursor(
            partition.topic, partition.partition, reading.key_deserializer, reading.value_deserializer
        )
        self.size = len(data)

    @property
    def next_offset(self) -> int:
        return self._records.next_offset

    @property
    def leader_epoch(self) -> int:
        return self._records.leader_epoch

    @property
    def is_done(self) -> bool:
        return self._records.is_done

    def end_offset(self) -> int:
        """The offset of the next fetch: after the last complete batch."""
        return self._records.end_offset()

    def take(self, out: list[ConsumerRecord[Any, Any]], room: int) -> None:
        """Append up to `room` records. An error is raised only after all records before it were taken."""
        taken = len(out)
        try:
            while len(out) - taken < room and (batch := self._records.open_batch()) is not None:
                self._take_from(batch, out, room - (len(out) - taken))
        except Exception as error:
            if len(out) == taken:
                raise self._explained(error) from error

    def take_columns(self, columns: RecordColumns) -> None:
        """Append rows until the columns are full; errors as with take()."""
        taken = columns.count
        columns.begin(*self._partition)
        try:
            append_records(columns, self._records)
        except Exception as error:
            if columns.count == taken:
                raise self._explained(error) from error

    def _take_from(self, batch: OpenBatch, out: list[ConsumerRecord[Any, Any]], room: int) -> None:
        records, cursor = self._records, self._cursor
        cursor.open(batch, records.next_offset)
        try:
            cursor.take(out, room)
        except Exception:
            records.stopped(cursor.next_offset)
            raise
        records.moved(batch, cursor.position, cursor.left, cursor.next_offset)

    def _explained(self, error: Exception) -> Exception:
        if isinstance(error, KafkaError):
            return error
        where = f"{self._partition} at or after offset {self.next_offset}"
        if isinstance(error, ValueError) and self._reading[:2] == (None, None):
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A record of {where} is malformed: {error}")
        return SerializationError(f"A record of {where} cannot be deserialized: {error}")
