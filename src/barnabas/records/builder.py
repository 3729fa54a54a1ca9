"""Making record batches and reading their records: for tests, the console, coordinators and the log cleaner.

The produce path of the broker does not use this: it checks and stamps the bytes that it gets
(validation.py)."""

import struct
from collections.abc import Sequence
from typing import NamedTuple, TypedDict, Unpack

from crc32c import crc32c

from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.batches import find_timestamp
from barnabas.kernels.record_append import encode_records
from barnabas.kernels.record_decode import decode_records
from barnabas.records.batch import (
    ATTRIBUTES_POSITION,
    CONTROL_FLAG,
    CRC,
    CRC_POSITION,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Buffer,
    read_header,
)
from barnabas.records.compression import NONE, compress, decompress

Header = tuple[str, bytes | None]
NewRecord = tuple[int, bytes | None, bytes | None, Sequence[Header]]  # timestamp, key, value, headers

ABORT_MARKER = 0
COMMIT_MARKER = 1
DECOMPRESSED_BYTES_MAX = 1 << 30

_LONG_MIN = -(1 << 63)
# find_timestamp answers this instead of an offset delta.
_MALFORMED = -2
_MARKER_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    timestamp: int
    offset: int


class BatchFields(TypedDict, total=False):
    """What a batch may have besides its records; every field is optional."""

    base_offset: int
    compression: int
    compression_level: int | None
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    control: bool
    leader_epoch: int
    log_append_time: int | None
    delete_horizon: int | None


class TimedOffset(NamedTuple):
    offset: int
    timestamp: int


class Marker(NamedTuple):
    """The contents of a control batch: how a transaction ended."""

    kind: int
    coordinator_epoch: int


def build_batch(records: Sequence[NewRecord], **fields: Unpack[BatchFields]) -> bytearray:
    """A batch of the records at consecutive offsets, ready to be sent or appended."""
    delete_horizon = fields.get("delete_horizon")
    log_append_time = fields.get("log_append_time")
    timestamps = [record[0] for record in records]
    base_timestamp = timestamps[0] if timestamps else NO_TIMESTAMP
    if delete_horizon is not None:
        base_timestamp = delete_horizon
    payload = encode_records(records, base_timestamp)
    codec = fields.get("compression", NONE)
    header = BatchHeader(
        base_offset=fields.get("base_offset", 0),
        length=0,
        leader_epoch=fields.get("leader_epoch", NO_LEADER_EPOCH),
        magic=MAGIC,
        crc=0,
        attributes=codec | _flags(fields),
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(timestamps, default=NO_TIMESTAMP) if log_append_time is None else log_append_time,
        producer_id=fields.get("producer_id", NO_PRODUCER_ID),
        producer_epoch=fields.get("producer_epoch", NO_PRODUCER_EPOCH),
        base_sequence=fields.get("base_sequence", NO_SEQUENCE),
        count=len(records),
    )
    packed = payload if codec == NONE else compress(codec, payload, fields.get("compression_level"))
    return seal(header, packed)


def _flags(fields: BatchFields) -> int:
    flags = TRANSACTIONAL_FLAG if fields.get("transactional") else 0
    if fields.get("control"):
        flags |= CONTROL_FLAG
    if fields.get("log_append_time") is not None:
        flags |= LOG_APPEND_TIME_FLAG
    if fields.get("delete_horizon") is not None:
        flags |= DELETE_HORIZON_FLAG
    return flags


def seal(header: BatchHeader, payload: Buffer) -> bytearray:
    """A batch of the header and the records, already compressed; its length and CRC are computed here."""
    view = memoryview(payload)
    batch = bytearray(HEADER_SIZE + len(view))
    batch[HEADER_SIZE:] = view
    HEADER.pack_into(batch, 0, *header._replace(length=len(batch) - LOG_OVERHEAD))
    CRC.pack_into(batch, CRC_POSITION, crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]))
    return batch


def rebuild_batch(
    header: BatchHeader, records: Sequence[Record], compression_level: int | None = None
) -> bytearray:
    """A batch with the same header and only these of its records, each at its own offset.

    The offset range and the producer's fields stay even if no record is left: a reader continues after the
    last offset, and the producer's sequence is not lost."""
    rows = [(record.timestamp, record.key, record.value, record.headers) for record in records]
    deltas = [record.offset - header.base_offset for record in records]
    timestamps = [record.timestamp for record in records]
    keeps_max_timestamp = header.is_log_append_time or not records
    packed = encode_records(rows, header.base_timestamp, deltas)
    return seal(
        header._replace(
            count=len(records),
            max_timestamp=header.max_timestamp if keeps_max_timestamp else max(timestamps),
        ),
        compress(header.compression, packed, compression_level),
    )


def records_payload(
    batch: Buffer, header: BatchHeader, bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> memoryview:
    """The records of the batch at the start of the buffer, decompressed."""
    view = memoryview(batch)
    if header.size < HEADER_SIZE or header.size > len(view):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"the batch is cut off: its header says {header.size} bytes, there are {len(view)}",
        )
    return decompress(header.compression, view[HEADER_SIZE : header.size], bytes_max)


def read_records(batch: Buffer, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """The records of the batch at the start of the buffer; raises CORRUPT_MESSAGE if they are malformed."""
    header = read_header(batch)
    payload = bytes(records_payload(batch, header, bytes_max))
    try:
        rows = decode_records(payload, 0, header.count, header.base_timestamp, header.base_offset)
    except ValueError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if header.is_log_append_time:
        return [Record(*row)._replace(timestamp=header.max_timestamp) for row in rows]
    return [Record._make(row) for row in rows]


def first_at_or_after(batch: Buffer, timestamp: int) -> TimedOffset | None:
    """The first record that is not before the timestamp, in the batch at the start of the buffer."""
    header = read_header(batch)
    if header.max_timestamp < timestamp:
        return None
    payload = records_payload(batch, header, DECOMPRESSED_BYTES_MAX)
    target = _LONG_MIN if header.is_log_append_time else max(timestamp, _LONG_MIN)
    delta, record_timestamp = find_timestamp(payload, 0, header.count, header.base_timestamp, target)
    if delta == _MALFORMED:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"a record of the batch at offset {header.base_offset} is malformed"
        )
    if delta < 0:
        return None
    if header.is_log_append_time:
        record_timestamp = header.max_timestamp
    return TimedOffset(header.base_offset + delta, record_timestamp)


def control_batch(
    kind: int,
    coordinator_epoch: int,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The marker that ends a producer's transaction: ABORT_MARKER or COMMIT_MARKER."""
    key = _MARKER_KEY.pack(0, kind)
    value = _MARKER_VALUE.pack(0, coordinator_epoch)
    return build_batch(
        [(timestamp, key, value, ())],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )


def read_marker(batch: Buffer) -> Marker | None:
    """How the control batch ends a transaction; None if it is a control batch of another kind."""
    record = read_records(batch)[0]
    try:
        _, kind = _MARKER_KEY.unpack_from(record.key or b"")
        if kind not in (ABORT_MARKER, COMMIT_MARKER):
            return None
        _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value or b"")
    except struct.error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "a control record is too short") from None
    return Marker(kind, coordinator_epoch)
