"""Record sets as Arrow columns; tables.py has the opposite direction.

    columns = RecordColumns(kafka_columns(include_headers=True), rows_max=100_000, bytes_max=64 << 20)
    next_offset = append_fetched(columns, records, first_offset=first, end_offset=end)
    batch = columns.finish("orders", 0)          # pyarrow.RecordBatch; the columns are empty again

A kernel (kernels/arrow_decode.py) decodes the rows, without a Python object for each record."""

from array import array
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.arrow_decode import BinaryColumn, ColumnBuffers
from barnabas.records.arrow_module import pyarrow
from barnabas.records.batch import Buffer
from barnabas.records.record_set import OpenBatch, RecordSet
from barnabas.records.tables import encode_batches

__all__ = [
    "COLUMNS",
    "RecordColumns",
    "append_fetched",
    "append_records",
    "encode_batches",
    "kafka_columns",
    "kafka_schema",
    "pyarrow",
]

# In the order of Spark's Kafka connector.
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
ROWS_MAX = BYTES_MAX = (1 << 31) - 2
OFFSET_MAX = (1 << 63) - 2
# The largest time in milliseconds that fits into 64 bits as microseconds.
_MILLISECONDS_MAX = ((1 << 63) - 1) // 1000


def kafka_columns(include_headers: bool = False) -> tuple[str, ...]:
    """The names of the Kafka connector's columns."""
    return COLUMNS if include_headers else COLUMNS[:-1]


def kafka_schema(include_headers: bool = False, columns: Sequence[str] | None = None) -> Any:
    """The pyarrow.Schema of Spark's Kafka connector, or of these of its columns in this order.

    It equals the result of PySpark's to_arrow_schema(schema, "UTC"); all columns are nullable."""
    arrow = pyarrow()
    pair = arrow.struct([("key", arrow.string()), ("value", arrow.binary())])
    kinds = {
        "key": arrow.binary(),
        "value": arrow.binary(),
        "topic": arrow.string(),
        "partition": arrow.int32(),
        "offset": arrow.int64(),
        "timestamp": arrow.timestamp("us", "UTC"),
        "timestampType": arrow.int32(),
        "headers": arrow.list_(arrow.field("element", pair)),
    }
    names = kafka_columns(include_headers) if columns is None else columns
    unknown = [name for name in names if name not in kinds]
    if unknown:
        raise ValueError(f"unknown column {', '.join(unknown)}; the columns are {', '.join(COLUMNS)}")
    return arrow.schema([(name, kinds[name]) for name in names])


class RecordColumns:
    """Collects rows of record sets; finish() makes them a pyarrow.RecordBatch.

    There is room for `rows_max` rows and `bytes_max` bytes of keys, values and headers; one row always fits.
    Only the columns that are named are decoded. `check_crcs` applies to the record sets that append_fetched
    reads."""

    def __init__(
        self,
        columns: Iterable[str] = COLUMNS,
        *,
        rows_max: int = ROWS_MAX,
        bytes_max: int = BYTES_MAX,
        check_crcs: bool = True,
    ) -> None:
        self._columns = tuple(columns)
        self.rows_max = rows_max
        self.bytes_max = bytes_max
        self.check_crcs = check_crcs
        self._start()

    def _start(self) -> None:
        self.buffers = ColumnBuffers(frozenset(self._columns))
        self._sources: list[tuple[str, int, int]] = []  # topic, partition, first row
        self._types: list[tuple[int, int]] = []  # timestamp type, first row
        self._ran_out_of_room = False

    @property
    def count(self) -> int:
        """Rows so far."""
        return self.buffers.count

    @property
    def size(self) -> int:
        """Bytes of keys, values and headers so far."""
        return self.buffers.size

    @property
    def is_full(self) -> bool:
        """Whether there is certainly no room for the next row; a large row may not fit earlier."""
        return (
            self._ran_out_of_room
            or self.buffers.count >= self.rows_max
            or self.buffers.size >= self.bytes_max
        )

    def begin(self, topic: str, partition: int) -> None:
        """Set the topic and partition of the rows that follow. Not needed if finish() gets them."""
        self._sources.append((topic, partition, self.count))

    def append_batch(self, records: RecordSet, batch: OpenBatch, last_offset: int = OFFSET_MAX) -> None:
        """Append records of the batch up to `last_offset` while there is room, and report it to the record
        set.

        Raises CORRUPT_MESSAGE if a record is malformed; the rows before it have been appended then."""
        buffers = self.buffers
        kind = int(batch.append_time is not None)
        if not self._types or self._types[-1][0] != kind:
            self._types.append((kind, buffers.count))
        try:
            buffers.append_batch(batch, records.next_offset, last_offset, self.rows_max, self.bytes_max)
        except ValueError as error:
            records.stopped(buffers.next_offset)
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"A batch of {records.source} is malformed: {error}."
            ) from error
        self._ran_out_of_room = buffers.left > 0 and buffers.next_offset <= last_offset
        records.moved(batch, buffers.position, buffers.left, buffers.next_offset)

    def finish(self, topic: str | None = None, partition: int | None = None, schema: Any = None) -> Any:
        """Return the rows as a pyarrow.RecordBatch and start again without rows.

        `schema` has the columns and their types; the default is kafka_schema. If its headers are nullable, a
        record without headers has null, as with Spark's connector, otherwise an empty list. A timestamp that
        does not fit into the unit of the schema becomes null."""
        if topic is not None and partition is not None:
            self._sources = [(topic, partition, 0)]
        schema = kafka_schema(columns=self._columns) if schema is None else schema
        missing = [field.name for field in schema if field.name not in self._columns]
        if missing:
            raise ValueError(f"these columns were not decoded: {', '.join(missing)}")
        self.buffers.trim()
        arrays = [self._array(field) for field in schema]
        self._start()
        return pyarrow().RecordBatch.from_arrays(arrays, schema=schema)

    def _array(self, field: Any) -> Any:
        arrow, buffers = pyarrow(), self.buffers
        if field.name == "key":
            return _binary(buffers.keys)
        if field.name == "value":
            return _binary(buffers.values)
        if field.name == "offset":
            return _fixed(arrow.int64(), buffers.count, buffers.offsets)
        if field.name == "timestamp":
            return _timestamps(buffers, field.type)
        if field.name == "headers":
            return _headers(buffers, field)
        if field.name == "topic":
            return self._runs([(source[0], source[2]) for source in self._sources], field.type)
        if field.name == "partition":
            return self._runs([source[1:] for source in self._sources], field.type)
        return self._runs(self._types, field.type)

    def _runs(self, runs: Sequence[tuple[Any, int]], kind: Any) -> Any:
        """A column of runs: (value, first row); a value is repeated until the next run begins."""
        arrow = pyarrow()
        if arrow.types.is_dictionary(kind):
            places = {value: place for place, value in enumerate(dict.fromkeys(run[0] for run in runs))}
            indices = self._runs([(places[value], row) for value, row in runs], kind.index_type)
            return arrow.DictionaryArray.from_arrays(indices, arrow.array(list(places), kind.value_type))
        ends = [row for _, row in runs[1:]] + [self.count]
        if arrow.types.is_int32(kind):
            numbers = array("i")
            for (value, row), end in zip(runs, ends, strict=False):
                numbers.extend(array("i", (value,)) * (end - row))
            return _fixed(kind, len(numbers), numbers)
        parts = [
            arrow.repeat(arrow.scalar(value, kind), end - row)
            for (value, row), end in zip(runs, ends, strict=False)
        ]
        return arrow.concat_arrays(parts) if parts else arrow.array([], kind)


def append_records(columns: RecordColumns, records: RecordSet, end_offset: int | None = None) -> int:
    """Append records below `end_offset` while there is room; returns the offset to continue at.

    If the columns are full then, finish them and call this again with the same RecordSet. If they are not
    full, all complete batches have been read, and the next fetch begins at the returned offset."""
    last_offset = OFFSET_MAX if end_offset is None else end_offset - 1
    while records.next_offset <= last_offset and (batch := records.open_batch()) is not None:
        columns.append_batch(records, batch, last_offset)
        if batch.left and records.next_offset <= last_offset:
            break
    return min(records.next_offset, last_offset + 1)


def append_fetched(
    columns: RecordColumns,
    records: Buffer,
    *,
    first_offset: int,
    end_offset: int | None = None,
    aborted: Iterable[tuple[int, int]] = (),
    read_committed: bool = False,
) -> int:
    """Append the records of a Fetch response from `first_offset` on and below `end_offset`.

    Returns the offset to continue at. If the columns are full, finish them and call this again with that
    offset as first_offset (or use a RecordSet with append_records, which remembers its position); otherwise
    the next fetch begins there. The offset may be after the last row, because control batches, aborted
    transactions (with `read_committed`; `aborted` has (producer id, first offset) from the response) and
    compacted records are skipped. A batch that is cut off is ignored. Raises CORRUPT_MESSAGE if a batch does
    not match its CRC (with columns.check_crcs) or is malformed."""
    record_set = RecordSet(
        records, first_offset, aborted, read_committed=read_committed, check_crcs=columns.check_crcs
    )
    return append_records(columns, record_set, end_offset)


def _fixed(kind: Any, count: int, values: Any) -> Any:
    arrow = pyarrow()
    return arrow.Array.from_buffers(kind, count, [None, arrow.py_buffer(values)])


def _binary(column: BinaryColumn | None) -> Any:
    arrow = pyarrow()
    assert column is not None
    validity = arrow.py_buffer(column.bits) if column.nulls else None
    buffers = [validity, arrow.py_buffer(column.ends), arrow.py_buffer(column.data)]
    return arrow.Array.from_buffers(arrow.binary(), column.rows, buffers, column.nulls)


def _timestamps(buffers: ColumnBuffers, kind: Any) -> Any:
    """The timestamps in the unit of the column; in the records they are milliseconds."""
    arrow = pyarrow()
    milliseconds = _fixed(arrow.timestamp("ms", kind.tz), buffers.count, buffers.timestamps)
    try:
        return milliseconds if milliseconds.type == kind else milliseconds.cast(kind)
    except arrow.ArrowInvalid:
        times = milliseconds.cast(arrow.int64()).to_pylist()
        fitting = [time if abs(time) <= _MILLISECONDS_MAX else None for time in times]
        return arrow.array(fitting, milliseconds.type).cast(kind)


def _headers(buffers: ColumnBuffers, field: Any) -> Any:
    arrow = pyarrow()
    count, ends = buffers.count, buffers.header_ends
    kinds = field.type.value_type
    pairs = arrow.StructArray.from_arrays(
        [_names(buffers.header_names), _binary(buffers.header_values)],
        fields=[kinds.field(0), kinds.field(1)],
    )
    validity = None
    if field.nullable:
        offsets = _fixed(arrow.int32(), count + 1, ends)
        compute = import_module("pyarrow.compute")
        validity = compute.not_equal(offsets.slice(1), offsets.slice(0, count)).buffers()[1]
    return arrow.Array.from_buffers(field.type, count, [validity, arrow.py_buffer(ends)], children=[pairs])


def _names(column: BinaryColumn) -> Any:
    """The names of the headers. Kafka does not check that they are text: invalid UTF-8 is replaced."""
    arrow = pyarrow()
    names = _binary(column)
    if not column.rows:
        return arrow.array([], arrow.string())
    try:
        return names.cast(arrow.string())
    except arrow.ArrowInvalid:
        texts = [name.decode("utf-8", "replace") for name in names.to_pylist()]
        return arrow.array(texts, arrow.string())
