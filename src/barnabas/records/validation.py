"""Checks on a batch that a producer sent, as Kafka does them for Produce version 3 and later.

In order: one complete batch of magic 2 with base offset 0 · size · CRC, before anything is decompressed ·
count, flags and producer fields · every record, after decompression. Then the batch is changed as the topic
requires: its compression, its type of timestamp, and its max timestamp if that is wrong. The only side effect
is that those header fields are written into the given data; this may run in any thread."""

import struct
from dataclasses import dataclass, field

from crc32c import crc32c

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.batches import CheckedBatch, PlainRules, RecordWalk, check_plain
from barnabas.records.batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC,
    CRC_POSITION,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    Buffer,
    read_header,
)
from barnabas.records.builder import seal
from barnabas.records.compression import CODECS, compress, decompress

# Length, attributes, timestamp, offset, key length, value length, number of headers: one byte each.
RECORD_SIZE_MIN = 7
# The answer lists at most this many refused records of a batch.
RECORD_ERRORS_MAX = 1000
DECOMPRESSED_BYTES_MIN = 64 * 1024 * 1024
DECOMPRESSED_RATIO = 16
# Compressing one byte takes about as long as decompressing this many.
COMPRESSION_COST = 8

_LONG_MIN = -(1 << 63)
_LONG_MAX = (1 << 63) - 1
_ATTRIBUTES = struct.Struct(">h")
_MAX_TIMESTAMP = struct.Struct(">q")
_MAX_TIMESTAMP_POSITION = 35
_LENGTH_MIN = 14  # Kafka treats a smaller length as corrupt.

_NO_KEY = 11
_TIMESTAMP_OUT_OF_RANGE = 12
_REASONS = {
    1: "its length is malformed or beyond the end of the batch",
    2: "its timestamp is malformed",
    3: "its offset delta is not its index in the batch",
    4: "the length of its key is malformed or beyond the end of the record",
    5: "the length of its value is malformed or beyond the end of the record",
    6: "its number of headers is malformed or too large for the record",
    7: "a header is malformed or beyond the end of the record",
    8: "there are extra bytes at the end of the record",
    9: "there are extra bytes after the last record",
    10: "its timestamp does not fit into 64 bits",
}


@dataclass(frozen=True, slots=True)
class BatchRules:
    """What a topic requires of the batches that are sent to it."""

    max_batch_bytes: int = 1024 * 1024 + LOG_OVERHEAD
    compacted: bool = False
    log_append_time: bool = False
    timestamp_before_max_ms: int = _LONG_MAX
    timestamp_after_max_ms: int = 3_600_000
    target_compression: str = "producer"
    compression_level: int | None = None
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MIN
    # For check_plain (kernels/batches.py); None if the topic changes the batches that it gets, because it
    # compresses them or sets their timestamps.
    plain: PlainRules | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        keeps_batches = not self.log_append_time and self.target_codec in (None, CODECS["none"])
        plain = PlainRules(
            self.timestamp_before_max_ms, self.timestamp_after_max_ms, self.compacted, self.max_batch_bytes
        )
        object.__setattr__(self, "plain", plain if keeps_batches else None)

    @property
    def target_codec(self) -> int | None:
        """The codec that batches must have; None if the codec of the producer is kept."""
        return CODECS.get(self.target_compression)

    @classmethod
    def of(cls, config: TopicConfig) -> "BatchRules":
        levels = {
            "gzip": config.compression_gzip_level,
            "lz4": config.compression_lz4_level,
            "zstd": config.compression_zstd_level,
        }
        return cls(
            max_batch_bytes=config.max_message_bytes,
            compacted=config.cleanup_compact,
            log_append_time=config.message_timestamp_type == "LogAppendTime",
            timestamp_before_max_ms=config.message_timestamp_before_max_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
            target_compression=config.compression_type,
            compression_level=levels.get(config.compression_type),
            decompressed_bytes_max=max(DECOMPRESSED_BYTES_MIN, DECOMPRESSED_RATIO * config.max_message_bytes),
        )


class InvalidRecordError(KafkaError):
    """Records are refused; `record_errors` has (index, reason) of each, for Produce version 8 and later."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class ExpandsTooMuch(Exception):
    """The records of a batch expand to more bytes than the caller of `validate` can wait for."""


def validate(
    data: Buffer, rules: BatchRules, now_ms: int, expanded_bytes_max: int | None = None
) -> CheckedBatch:
    """The one batch in `data`, checked and made to fit the rules. Raises KafkaError if it is refused.

    With `expanded_bytes_max` it raises ExpandsTooMuch, before anything has changed, if the records expand to
    more than that many bytes, or if so many have to be compressed that it takes as long."""
    view = memoryview(data)
    if rules.plain is not None and not view.readonly:
        # Most batches are plain, and one pass finds that out.
        plain = check_plain(view, rules.plain, now_ms)
        if plain is not None:
            return plain
    header = _checked_header(view, rules)
    if view.readonly:
        view = memoryview(bytearray(view))
    attributes = header.attributes
    is_recompressed = rules.target_codec not in (None, header.compression)
    payload, start = view, HEADER_SIZE
    if header.compression:
        payload = _expanded(header.compression, view[HEADER_SIZE:], rules, expanded_bytes_max)
        start = 0
    if is_recompressed:
        _check_cost(payload, expanded_bytes_max)
    max_timestamp, max_timestamp_delta = _check_records(payload, start, header, rules, now_ms)
    if rules.log_append_time:
        attributes |= LOG_APPEND_TIME_FLAG
        max_timestamp, max_timestamp_delta = now_ms, header.last_offset_delta
    elif attributes & LOG_APPEND_TIME_FLAG:
        attributes &= ~LOG_APPEND_TIME_FLAG
    if is_recompressed:
        attributes = attributes & ~COMPRESSION_MASK | CODECS[rules.target_compression]
        sealed = header._replace(attributes=attributes, max_timestamp=max_timestamp)
        view = _recompressed(sealed, payload[start:], rules)
    elif attributes != header.attributes or max_timestamp != header.max_timestamp:
        _rewrite(view, attributes, max_timestamp)
    return CheckedBatch(
        view,
        header.count,
        header.last_offset_delta,
        max_timestamp,
        max_timestamp_delta,
        attributes,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )


def _expanded(codec: int, compressed: memoryview, rules: BatchRules, bytes_max: int | None) -> memoryview:
    if bytes_max is None or bytes_max >= rules.decompressed_bytes_max:
        return decompress(codec, compressed, rules.decompressed_bytes_max)
    try:
        return decompress(codec, compressed, bytes_max)
    except KafkaError as error:
        if error.code == ErrorCode.MESSAGE_TOO_LARGE:
            raise ExpandsTooMuch from None
        raise


def _check_cost(payload: memoryview, expanded_bytes_max: int | None) -> None:
    """Compression takes longer than decompression."""
    if expanded_bytes_max is not None and COMPRESSION_COST * len(payload) > expanded_bytes_max:
        raise ExpandsTooMuch


def trusted(batch: Buffer) -> CheckedBatch:
    """A batch that this broker built itself, taken as it is: markers, and the records of coordinators."""
    view = memoryview(batch)
    header = read_header(view)
    return CheckedBatch(
        view,
        header.count,
        header.last_offset_delta,
        header.max_timestamp,
        header.last_offset_delta,
        header.attributes,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )


def _checked_header(view: memoryview, rules: BatchRules) -> BatchHeader:
    size = len(view)
    if size < HEADER_SIZE:
        raise _refuse_short(view)
    header = BatchHeader._make(HEADER.unpack_from(view))
    if header.length + LOG_OVERHEAD != size or header.magic != MAGIC or header.base_offset != 0:
        raise _refuse_frame(size, header)
    if size > rules.max_batch_bytes:
        raise _too_large(size, rules)
    if crc32c(view[ATTRIBUTES_POSITION:]) != header.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the CRC of the batch does not match its contents")
    if (
        header.count <= 0
        or header.last_offset_delta != header.count - 1
        or header.attributes & CONTROL_FLAG
        or header.producer_id >= 0 > min(header.base_sequence, header.producer_epoch)
    ):
        raise _refuse_header(header)
    return header


def _check_records(
    payload: memoryview, start: int, header: BatchHeader, rules: BatchRules, now_ms: int
) -> tuple[int, int]:
    """The highest timestamp of the records and the index of the first record that has it."""
    count = header.count
    size = len(payload) - start
    if count > size // RECORD_SIZE_MIN:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"the batch claims {count} records, but {size} bytes have no room for them",
        )
    earliest, latest = _LONG_MIN, _LONG_MAX
    if not rules.log_append_time:
        earliest = now_ms - rules.timestamp_before_max_ms
        latest = min(now_ms + rules.timestamp_after_max_ms, _LONG_MAX)
    elif header.attributes & LOG_APPEND_TIME_FLAG:
        raise _refuse_log_append_time(count)
    walk = RecordWalk(count, header.base_timestamp, earliest, latest, rules.compacted, start)
    error = walk.run(payload)
    if error:
        raise _refuse_records(payload, walk, error)
    return walk.timestamp, walk.timestamp_index


def _rewrite(view: memoryview, attributes: int, max_timestamp: int) -> None:
    _ATTRIBUTES.pack_into(view, ATTRIBUTES_POSITION, attributes)
    _MAX_TIMESTAMP.pack_into(view, _MAX_TIMESTAMP_POSITION, max_timestamp)
    CRC.pack_into(view, CRC_POSITION, crc32c(view[ATTRIBUTES_POSITION:]))


def _recompressed(header: BatchHeader, records: memoryview, rules: BatchRules) -> memoryview:
    """The same records in another codec; they are relative to the header, so nothing else changes."""
    batch = seal(header, compress(header.compression, records, rules.compression_level))
    if len(batch) > rules.max_batch_bytes:
        raise _too_large(len(batch), rules)
    return memoryview(batch)


def _refuse_short(view: memoryview) -> KafkaError:
    if len(view) < LOG_OVERHEAD:
        return KafkaError(
            ErrorCode.INVALID_RECORD,
            "a produce request must have exactly one record batch for each partition",
        )
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{len(view)} bytes are too few for a record batch")


def _refuse_frame(size: int, header: BatchHeader) -> KafkaError:
    if header.length < _LENGTH_MIN or not 0 <= header.magic <= MAGIC:
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"the batch header is invalid: length {header.length}, magic {header.magic}",
        )
    if header.size > size:
        return KafkaError(
            ErrorCode.INVALID_RECORD, f"the batch is cut off: its header says {header.size} bytes, got {size}"
        )
    if header.magic != MAGIC:
        return KafkaError(
            ErrorCode.INVALID_RECORD, f"the batch has magic {header.magic}; only magic 2 is supported"
        )
    if header.size < HEADER_SIZE:
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"a batch of {header.size} bytes is too short for its header"
        )
    if header.size < size:
        return KafkaError(
            ErrorCode.INVALID_RECORD,
            "a produce request must have exactly one record batch for each partition",
        )
    return KafkaError(
        ErrorCode.INVALID_RECORD, f"the base offset of a new batch must be 0, not {header.base_offset}"
    )


def _too_large(size: int, rules: BatchRules) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"the batch has {size} bytes, more than max.message.bytes of the topic ({rules.max_batch_bytes})",
    )


def _refuse_header(header: BatchHeader) -> KafkaError:
    if header.count <= 0 or header.last_offset_delta != header.count - 1:
        reason = f"the batch has {header.count} records but the last offset delta {header.last_offset_delta}"
    elif header.is_control:
        reason = "clients must not write control batches"
    else:
        reason = (
            f"a batch of producer {header.producer_id} needs an epoch and a sequence from 0 on, "
            f"not epoch {header.producer_epoch} and sequence {header.base_sequence}"
        )
    return KafkaError(ErrorCode.INVALID_RECORD, reason)


def _refuse_log_append_time(count: int) -> KafkaError:
    reason = "the topic uses LogAppendTime, so a producer must not send that timestamp type"
    errors = [(index, reason) for index in range(min(count, RECORD_ERRORS_MAX))]
    return InvalidRecordError(ErrorCode.INVALID_TIMESTAMP, reason, errors)


def _refuse_records(payload: memoryview, walk: RecordWalk, error: int) -> KafkaError:
    """The error for a walk that stopped; it continues the walk to find the other records that are refused."""
    errors: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    while error in (_NO_KEY, _TIMESTAMP_OUT_OF_RANGE) and len(errors) < RECORD_ERRORS_MAX:
        index = walk.index - 1
        if error == _NO_KEY:
            errors.append((index, "a record of a compacted topic must have a key"))
        else:
            code = ErrorCode.INVALID_TIMESTAMP
            limits = f"{walk.timestamp_min} and {walk.timestamp_max}"
            errors.append((index, f"timestamp {walk.timestamp} must be between {limits}"))
        error = walk.run(payload)
    if error in _REASONS:
        return KafkaError(
            ErrorCode.INVALID_RECORD, f"record {walk.index} of the batch is malformed: {_REASONS[error]}"
        )
    return InvalidRecordError(code, f"record {errors[0][0]} of the batch is refused: {errors[0][1]}", errors)
