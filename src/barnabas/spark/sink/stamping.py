"""Puts producer id, epoch and sequence into the headers of complete record batches."""

from collections.abc import Iterator

from crc32c import crc32c

from barnabas.records.batch import (
    ATTRIBUTES_POSITION,
    CRC,
    CRC_POSITION,
    HEADER,
    TRANSACTIONAL_FLAG,
    Buffer,
    iter_headers,
    read_header,
)

SEQUENCE_MASK = 0x7FFFFFFF


def split_batches(data: Buffer) -> Iterator[bytearray]:
    """The batches in `data`, each as a copy."""
    view = memoryview(data)
    for position, header in iter_headers(view):
        yield bytearray(view[position : position + header.size])


def stamp_producer(batch: bytearray, producer_id: int, epoch: int, sequence: int) -> int:
    """Make the batch part of the producer's transaction, in place; returns the sequence of the next batch."""
    header = read_header(batch)
    stamped = header._replace(
        attributes=header.attributes | TRANSACTIONAL_FLAG,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    HEADER.pack_into(batch, 0, *stamped)
    CRC.pack_into(batch, CRC_POSITION, crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]))
    return (sequence + header.count) & SEQUENCE_MASK
