"""The journal of a coordinator on a partition of an internal topic that this broker leads."""

import os
from collections.abc import Callable, Iterator, Sequence

from barnabas.clock import Clock
from barnabas.coordination.journal import Entry, Marker, Replayed
from barnabas.coordination.step import JournalRecord, Producer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.log.producers import Origin
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, BatchHeader, iter_headers
from barnabas.records.builder import COMMIT_MARKER, build_batch, read_marker, read_records
from barnabas.records.validation import trusted
from barnabas.replication.partition import Partition

PORTION_BYTES = 1 << 20


class PartitionJournal:
    def __init__(self, partition: Partition, clock: Clock) -> None:
        self._partition = partition
        self._clock = clock
        # A journal speaks for the term in which it was opened; a later term has a journal of its own.
        self._term = partition.leader_epoch

    def append(self, records: Sequence[JournalRecord], producer: Producer | None) -> int:
        self._check_term()
        now_ms = self._clock.now_ms()
        batch = build_batch(
            [(now_ms, record.key, record.value, ()) for record in records],
            producer_id=NO_PRODUCER_ID if producer is None else producer.id,
            producer_epoch=NO_PRODUCER_EPOCH if producer is None else producer.epoch,
            transactional=producer is not None,
        )
        if len(batch) > self._partition.log.config.max_message_bytes:
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, "the coordinator's record is too large")
        self._partition.check_enough_in_sync()
        return self._partition.append(trusted(batch), Origin.COORDINATOR).last_offset + 1

    def when_committed(self, end_offset: int, callback: Callable[[KafkaError | None], None]) -> None:
        def woken() -> None:
            if self._partition.high_watermark >= end_offset:
                callback(None)
            else:
                callback(KafkaError(ErrorCode.NOT_COORDINATOR))

        if self._partition.high_watermark >= end_offset:
            callback(None)
        else:
            self._partition.committed.when(end_offset, woken)

    def replay(self) -> Iterator[list[Replayed]]:
        log = self._partition.log
        offset, end = log.log_start_offset, log.log_end_offset
        while offset < end:
            found = log.read(offset, PORTION_BYTES, upper_offset=end, at_least_one=True)
            if found.file is None:
                return
            data = memoryview(os.pread(found.file.fileno(), found.size, found.position))
            found.release()
            portion: list[Replayed] = []
            for position, header in iter_headers(data):
                portion += _entries(header, data[position : position + header.size], offset)
                offset = header.next_offset
            yield portion

    def _check_term(self) -> None:
        if not self._partition.is_leader or self._partition.leader_epoch != self._term:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)


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
