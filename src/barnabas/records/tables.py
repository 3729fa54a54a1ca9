"""Arrow tables as record batches. A kernel (kernels/arrow_encode.py) encodes them without an object for each
row.

    for partition, batch, count in encode_batches(table, partition_count=4, compression="lz4"): ...

A table has a column `value` and may have `key` (both binary or string), `headers` (a list of pairs of name
and value, or a map), `partition` (integers; if null, the key decides), `timestamp` (a time, or milliseconds)
and `topic`, which the caller uses. `offset` and `timestampType`, which tables have that were read from a
topic, are ignored."""

import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from barnabas.kernels.arrow_encode import BytesInput, EncodedBatch, TableEncoder, largest_row
from barnabas.records.arrow_module import compute, pyarrow
from barnabas.records.batch import (
    HEADER_SIZE,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
)
from barnabas.records.builder import seal
from barnabas.records.compression import CODECS, compress

WRITTEN = ("value", "key", "headers", "partition", "timestamp", "topic")
IGNORED = ("offset", "timestampType")
BATCH_BYTES = 1_000_000
RECORD_BYTES_MAX = 1 << 30
# encoded() yields finished batches in portions of about this size.
PORTION_BYTES = 1 << 20
_NO_BYTES = memoryview(b"")


class Encoding(NamedTuple):
    """How rows become batches; `spread` has the partitions for rows without key and partition."""

    partition_count: int
    batch_bytes: int = BATCH_BYTES
    record_bytes_max: int = RECORD_BYTES_MAX
    spread: Sequence[int] = ()
    ignore_keys: bool = False


def record_batches(table: Any) -> list[Any]:
    """The pyarrow.RecordBatches of a table, a record batch, or anything that Arrow can read as a table."""
    arrow = pyarrow()
    if isinstance(table, arrow.RecordBatch):
        batches = [table]
    else:
        batches = (table if isinstance(table, arrow.Table) else arrow.table(table)).to_batches()
    for batch in batches[:1]:
        unknown = [name for name in batch.schema.names if name not in WRITTEN + IGNORED]
        if unknown or "value" not in batch.schema.names:
            raise ValueError(
                f"a table must have the column value and may have {', '.join(WRITTEN[1:])};"
                f" this one has {', '.join(batch.schema.names) or 'no columns'}"
            )
    return batches


def encoded(batches: Sequence[Any], encoding: Encoding) -> Iterator[list[EncodedBatch]]:
    """Portions of finished batches, each with room for its header at the front.

    Raises ValueError if a column has the wrong type. Raises OverflowError if a row is larger than
    record_bytes_max: before anything is encoded if its key and value are, later if only its headers make it
    too large."""
    spread = list(encoding.spread) or list(range(encoding.partition_count))
    random.shuffle(spread)
    encoder = TableEncoder(
        encoding.partition_count,
        encoding.batch_bytes,
        encoding.record_bytes_max,
        spread,
        encoding.ignore_keys,
    )
    now_ms = time.time_ns() // 1_000_000
    inputs = [_inputs(batch, encoding.record_bytes_max) for batch in batches]
    for batch, (values, keys) in zip(batches, inputs, strict=True):
        names = batch.schema.names
        headers = _headers(batch.column("headers")) if "headers" in names else NO_HEADERS
        times = _times(batch.column("timestamp"), now_ms) if "timestamp" in names else now_ms
        encoder.load(values, keys, headers.names, headers.values, headers.ends, _numbers(batch), times)
        row = 0
        while row < batch.num_rows:
            row = encoder.encode(row, batch.num_rows, PORTION_BYTES)
            yield _taken(encoder)
    encoder.finish()
    yield _taken(encoder)


def encode_batches(
    table: Any,
    partition_count: int,
    *,
    batch_bytes: int = BATCH_BYTES,
    compression: str = "none",
    record_bytes_max: int = RECORD_BYTES_MAX,
) -> list[tuple[int, bytearray, int]]:
    """(partition, finished record batch, number of records) of all rows, in order within each partition.

    A row goes to the partition that it names, otherwise to that of the murmur2 hash of its key as in Kafka's
    clients, otherwise to the partitions in turn, one batch to each. The batches have no producer id and are
    ready to be sent."""
    codec = CODECS[compression]
    encoding = Encoding(partition_count, batch_bytes, record_bytes_max)
    return [
        (batch.partition, _sealed(batch, codec), batch.count)
        for portion in encoded(record_batches(table), encoding)
        for batch in portion
    ]


def _taken(encoder: TableEncoder) -> list[EncodedBatch]:
    finished = list(encoder.finished)
    encoder.finished.clear()
    return finished


def _sealed(batch: EncodedBatch, codec: int) -> bytearray:
    header = BatchHeader(
        base_offset=0,
        length=0,
        leader_epoch=NO_LEADER_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=codec,
        last_offset_delta=batch.count - 1,
        base_timestamp=batch.base_timestamp,
        max_timestamp=batch.max_timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        count=batch.count,
    )
    records = memoryview(batch.data)[HEADER_SIZE:]
    return seal(header, compress(codec, records) if codec else records)


def _inputs(batch: Any, record_bytes_max: int) -> tuple[BytesInput, BytesInput | None]:
    """The values and the keys, if there are any; raises OverflowError if a row has too many bytes of them."""
    values = _input(_binary(batch.column("value"), "value"))
    keys = _input(_binary(batch.column("key"), "key")) if "key" in batch.schema.names else None
    largest = largest_row(values, keys, batch.num_rows)
    if largest > record_bytes_max - HEADER_SIZE:
        raise OverflowError(f"a row has {largest} bytes of key and value")
    return values, keys


def _binary(column: Any, name: str) -> Any:
    arrow = pyarrow()
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return column.cast(arrow.large_binary())
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
        raise ValueError(f"the column {name} must be binary or string, not {column.type}") from None


def _input(column: Any) -> BytesInput:
    bits, ends, data = column.buffers()
    return BytesInput(
        column.offset,
        memoryview(bits).cast("B") if column.null_count else None,
        _numbers_of(ends, "q", 8),
        memoryview(data).cast("B") if data is not None else _NO_BYTES,
    )


def _numbers_of(buffer: Any, code: Literal["i", "q"], width: int) -> Any:
    view = memoryview(b"" if buffer is None else buffer).cast("B")
    return view[: len(view) // width * width].cast(code)


class _Headers(NamedTuple):
    """The headers of all rows; row `i` has those from ends[i] to ends[i + 1]."""

    names: BytesInput | None
    values: BytesInput | None
    ends: Any


NO_HEADERS = _Headers(None, None, None)


def _headers(column: Any) -> _Headers:
    arrow, functions = pyarrow(), compute()
    kind = column.type
    if arrow.types.is_map(kind):
        pair = arrow.struct([("key", kind.key_type), ("value", kind.item_type)])
        column = column.cast(arrow.list_(pair))
        kind = column.type
    is_list = arrow.types.is_list(kind) or arrow.types.is_large_list(kind)
    if not (is_list and arrow.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2):
        raise ValueError(f"the column headers must be a list of pairs or a map, not {kind}")
    lengths = functions.list_value_length(column).cast(arrow.int64()).fill_null(0)
    start = arrow.array([0], arrow.int64())
    ends = functions.cumulative_sum(arrow.concat_arrays([start, lengths]))
    names, values = column.flatten().flatten()
    return _Headers(
        _input(_binary(names, "headers")),
        _input(_binary(values, "headers")),
        _numbers_of(ends.buffers()[1], "q", 8),
    )


def _numbers(batch: Any) -> Any:
    """The partition of each row, -1 if it names none; None if there is no such column."""
    arrow, functions = pyarrow(), compute()
    if "partition" not in batch.schema.names:
        return None
    column = batch.column("partition")
    try:
        numbers = column.cast(arrow.int32())
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
        raise ValueError(f"the column partition must have 32-bit integers: {error}") from None
    lowest = functions.min(numbers).as_py()
    if lowest is not None and lowest < 0:
        raise ValueError(f"a partition cannot be negative: {lowest}")
    numbers = numbers.fill_null(-1)
    view = _numbers_of(numbers.buffers()[1], "i", 4)
    return view[numbers.offset : numbers.offset + len(numbers)]


def _times(column: Any, now_ms: int) -> Any:
    arrow, functions = pyarrow(), compute()
    try:
        if arrow.types.is_timestamp(column.type):
            column = column.cast(arrow.timestamp("ms", column.type.tz), safe=False)
        times = column.cast(arrow.int64())
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
        raise ValueError(f"the column timestamp must have times or milliseconds: {error}") from None
    lowest = functions.min(times).as_py()
    if lowest is not None and lowest < 0:
        raise ValueError(f"a timestamp cannot be negative: {lowest}")
    times = times.fill_null(now_ms)
    view = _numbers_of(times.buffers()[1], "q", 8)
    return view[times.offset : times.offset + len(times)]
