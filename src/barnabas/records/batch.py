"""The header of a record batch (magic 2): the positions of its fields; reading and checking it.

Works on any buffer of bytes, without side effects."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.batches import next_batch

Buffer = bytes | bytearray | memoryview

MAGIC = 2
LOG_OVERHEAD = 12  # Base offset and length: the length field does not count these bytes.
HEADER_SIZE = 61
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21  # The CRC covers everything from here on.

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1

HEADER = struct.Struct(">qiibIhiqqqhii")
CRC = struct.Struct(">I")


class BatchHeader(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # Hides tuple.count, which a header does not need.

    @property
    def size(self) -> int:
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_FLAG != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; after 2^31-1 sequences continue at 0."""
        return last_sequence(self.base_sequence, self.last_offset_delta)


def last_sequence(base_sequence: int, last_offset_delta: int) -> int:
    if base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (base_sequence + last_offset_delta) & 0x7FFFFFFF


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; raises CORRUPT_MESSAGE if it is cut off. Checks nothing else."""
    try:
        return BatchHeader(*HEADER.unpack_from(buffer, position))
    except struct.error:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"the batch header at position {position} is cut off"
        ) from None


def crc_is_valid(buffer: Buffer, position: int, size: int) -> bool:
    """Whether the batch of `size` bytes at `position` matches its CRC; false if it is cut off."""
    view = memoryview(buffer)
    if size < HEADER_SIZE or position + size > len(view):
        return False
    (stored,) = CRC.unpack_from(view, position + CRC_POSITION)
    return bool(crc32c(view[position + ATTRIBUTES_POSITION : position + size]) == stored)


def iter_headers(buffer: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of every complete batch; stops at a batch that is cut off.

    Raises CORRUPT_MESSAGE at bytes that cannot be the start of a batch of magic 2."""
    view = memoryview(buffer)
    while True:
        size = next_batch(view, position)[0]
        if size == 0:
            return
        if size < 0:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"the bytes at position {position} are not a record batch"
            )
        yield position, read_header(view, position)
        position += size
