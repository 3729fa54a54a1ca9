"""The journal of a coordinator on a partition of an internal topic that this broker leads."""

import os
from collections.abc import Callable, Iterator, Sequence

from barnabas.clock import Clock
from barnabas.coordination.journal import Entry, Marker, Replayed
from barnabas.coordination.step import JournalRecord, Producer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, BatchHeader, iter_headers
from barnabas.records.builder import COMMIT_MARKER, build_batch, read_marker, read_records
from barnabas.records.validation import trusted
from barnabas.replication.partition import Partition

# A replay makes objects for so many bytes at once. A broker loads many partitions at the same time, and what
# they take together stays with the process.
PORTION_BYTES = 64 << 10

# A client of a coordinator does not expect the errors of a partition: it would give up where it should try
# again. It gets the same errors from Kafka.
CLIENT_CODES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class PartitionJournal:
    """Valid for the leader epoch in which it was opened; a later epoch has a journal of its own."""

    def __init__(self, partition: Partition, clock: Clock) -> None:
        self._partition = partition
        self._clock = clock
        self._leader_epoch = partition.leader_epoch

    @property
    def end_offset(self) -> int:
        return self._partition.log.log_end_offset

    def append(self, records: Sequence[JournalRecord], producer: Producer | None) -> int:
        if not self._leads:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        try:
            return self._append(records, producer)
        except KafkaError as error:
            raise KafkaError(CLIENT_CODES.get(error.code, error.code), error.message) from error

    def _append(self, records: Sequence[JournalRecord], producer: Producer | None) -> int:
        size = sum(len(record.key) + len(record.value or b"") for record in records)
        self._check_size(size)
        now_ms = self._clock.now_ms()
        batch = build_batch(
            [(now_ms, record.key, record.value, ()) for record in records],
            producer_id=NO_PRODUCER_ID if producer is None else producer.id,
            producer_epoch=NO_PRODUCER_EPOCH if producer is None else producer.epoch,
            transactional=producer is not None,
        )
        self._check_size(len(batch))
        self._partition.check_enough_in_sync()
        return self._partition.append(trusted(batch), from_client=False).last_offset + 1

    def _check_size(self, size: int) -> None:
        if size > self._partition.log.config.max_message_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a coordinator's batch of {size} bytes is larger than max.message.bytes "
                f"of {self._partition.topic_partition}",
            )

    def when_committed(self, end_offset: int, callback: Callable[[KafkaError | None], None]) -> None:
        def woken(reached: bool) -> None:
            callback(None if reached else KafkaError(ErrorCode.NOT_COORDINATOR))

        is_committed = self._partition.high_watermark >= end_offset
        if is_committed or not self._leads:
            woken(is_committed)
        else:
            self._partition.committed.when(end_offset, woken)

    def is_led_since(self, moment: float) -> bool:
        return self._leads and self._partition.is_led_since(moment)

    def replay(self) -> Iterator[list[Replayed]]:
        log = self._partition.log
        offset, end = log.log_start_offset, log.log_end_offset
        while offset < end:
            piece = log.read(offset, PORTION_BYTES, upper_offset=end, at_least_one=True)
            if piece.file is None:
                return
            data = memoryview(os.pread(piece.file.fileno(), piece.size, piece.position))
            piece.release()
            portion: list[Replayed] = []
            for position, header in iter_headers(data):
                portion += _entries(header, data[position : position + header.size], offset)
                offset = header.next_offset
            yield portion

    @property
    def _leads(self) -> bool:
        return self._partition.is_leader and self._partition.leader_epoch == self._leader_epoch


def _entries(header: BatchHeader, batch: memoryview, from_offset: int) -> list[Replayed]:
    producer = Producer(header.producer_id, header.producer_epoch)
    if header.is_control:
        marker = read_marker(batch) if header.count else None
        return [] if marker is None else [Marker(producer, marker.kind == COMMIT_MARKER)]
    owner = producer if header.is_transactional else None
    return [
        Entry(JournalRecord(record.key or b"", record.value), owner)
        for record in read_records(batch)
        if record.offset >= from_offset
    ]
