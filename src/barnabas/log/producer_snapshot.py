"""The .snapshot file: what a partition knows about its producers at an offset, in Kafka's binary form,
version 1.

Kafka stores only the newest batch of a producer. We add the earlier batches that a retry may still repeat as
a second table. Kafka's reader stops after its own entries and does not see it; the checksum covers both."""

import struct

import crc32c

from barnabas.log.errors import CorruptSnapshotError
from barnabas.log.producers import BatchMetadata, ProducerEntry

VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_PRODUCER = struct.Struct(">qhiqiqiq")
_BATCH = struct.Struct(">qiqiq")


def encode_snapshot(producers: dict[int, ProducerEntry]) -> bytes:
    parts = [_COUNT.pack(len(producers))]
    earlier: list[bytes] = []
    for entry in producers.values():
        last = entry.batches[-1] if entry.batches else BatchMetadata(-1, -1, 0, entry.last_timestamp)
        parts.append(
            _PRODUCER.pack(
                entry.producer_id,
                entry.epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
        )
        earlier += [_BATCH.pack(entry.producer_id, *batch) for batch in list(entry.batches)[:-1]]
    if earlier:
        parts += [_COUNT.pack(len(earlier)), *earlier]
    body = b"".join(parts)
    return _HEAD.pack(VERSION, crc32c.crc32c(body)) + body


def decode_snapshot(data: bytes) -> dict[int, ProducerEntry]:
    try:
        version, checksum = _HEAD.unpack_from(data)
        body = data[_HEAD.size :]
        if version != VERSION or checksum != crc32c.crc32c(body):
            raise CorruptSnapshotError(f"version {version} or the checksum is wrong")
        producers, position = _decode_producers(body)
        if position < len(body):
            _decode_earlier_batches(body, position, producers)
    except struct.error as problem:
        raise CorruptSnapshotError(f"the file is too short: {problem}") from problem
    return producers


def _decode_producers(body: bytes) -> tuple[dict[int, ProducerEntry], int]:
    producers: dict[int, ProducerEntry] = {}
    (count,) = _COUNT.unpack_from(body)
    position = _COUNT.size
    for _ in range(count):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first = (
            _PRODUCER.unpack_from(body, position)
        )
        entry = ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, first)
        if offset >= 0:
            entry.batches.append(BatchMetadata(sequence, offset, delta, timestamp))
        producers[producer_id] = entry
        position += _PRODUCER.size
    return producers, position


def _decode_earlier_batches(body: bytes, position: int, producers: dict[int, ProducerEntry]) -> None:
    (count,) = _COUNT.unpack_from(body, position)
    position += _COUNT.size
    newest = {producer_id: list(entry.batches) for producer_id, entry in producers.items()}
    for entry in producers.values():
        entry.batches.clear()
    for _ in range(count):
        producer_id, *batch = _BATCH.unpack_from(body, position)
        if producer_id in producers:
            producers[producer_id].batches.append(BatchMetadata(*batch))
        position += _BATCH.size
    for producer_id, batches in newest.items():
        producers[producer_id].batches.extend(batches)
