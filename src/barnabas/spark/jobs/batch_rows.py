"""The rows of an audit: one for each batch, and one for each fault in the bytes of a log.

Tasks make the rows from headers and from the offsets and timestamps of records, without a Python object per
record. Works on bytes only."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from barnabas.errors import KafkaError
from barnabas.records.arrow import RecordColumns, append_records
from barnabas.records.arrow_module import pyarrow
from barnabas.records.batch import BatchHeader, Buffer, read_header
from barnabas.records.record_set import RecordSet

# Sorted by `part` and `number` the rows of a partition are in the order of its log. Rows with a `check` are
# faults.
SCHEMA = (
    "place string, topic string, partition int, part bigint, number bigint, begins_at bigint,"
    " cleaned_to bigint, base_offset bigint, last_offset bigint, records bigint, is_marker boolean,"
    " leader_epoch int, producer_id bigint, producer_epoch int, base_sequence bigint, last_sequence bigint,"
    " first_timestamp bigint, last_timestamp bigint, backwards bigint, bytes bigint, check string,"
    " detail string"
)
COLUMNS = tuple(column.split()[0] for column in SCHEMA.split(", "))
ROWS_MAX = 10_000
_TYPES = {"string": "string", "int": "int32", "bigint": "int64", "boolean": "bool"}


class Stretch(NamedTuple):
    """The piece of a log that a task reads. `begins_at`: the first offset of the partition; below
    `cleaned_to` the log is compacted."""

    place: str
    topic: str
    partition: int
    part: int
    begins_at: int
    cleaned_to: int


class Times(NamedTuple):
    """The records of a batch: how many there are, the first and the last timestamp, and how often a record is
    older than the one before it."""

    records: int
    first: int | None
    last: int | None
    backwards: int


class BatchRows:
    """The rows of one stretch, returned as pyarrow.RecordBatch when there are enough."""

    def __init__(self, stretch: Stretch) -> None:
        self._stretch = stretch
        self._rows: list[tuple[Any, ...]] = []

    def add(self, number: int, data: Buffer, header: BatchHeader | None = None) -> BatchHeader:
        """Add a batch with a valid checksum; malformed records in it are a fault."""
        header = header or read_header(data)
        try:
            times = times_of(header, data, self._stretch.begins_at)
        except KafkaError as error:
            self.fault("records", number, header.base_offset, error.message)
            times = Times(header.count, None, None, 0)
        self._rows.append(
            (
                *self._stretch[:4],
                number,
                *self._stretch[4:],
                header.base_offset,
                header.last_offset,
                times.records,
                header.is_control,
                header.leader_epoch,
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.last_sequence,
                times.first,
                times.last,
                times.backwards,
                header.size,
                None,
                None,
            )
        )
        return header

    def fault(self, check: str, number: int, offset: int | None, detail: str) -> None:
        blank = (None,) * (len(COLUMNS) - 10)
        self._rows.append((*self._stretch[:4], number, *self._stretch[4:], offset, *blank, check, detail))

    def finished(self, *, all_of_them: bool) -> Iterator[Any]:
        if len(self._rows) >= ROWS_MAX or (all_of_them and self._rows):
            yield table_of(self._rows)
            self._rows = []


def times_of(header: BatchHeader, data: Buffer, begins_at: int) -> Times:
    """Raises CORRUPT_MESSAGE if the records do not agree with the header."""
    if header.is_control:
        return Times(0, None, None, 0)
    columns = RecordColumns(("offset", "timestamp"), check_crcs=False)
    append_records(columns, RecordSet(data, max(header.base_offset, begins_at), check_crcs=False))
    if not columns.count:
        return Times(0, None, None, 0)
    times = columns.finish("", 0).column(1).cast(pyarrow().int64()).to_numpy(zero_copy_only=False)
    backwards = int((times[1:] < times[:-1]).sum())
    return Times(len(times), int(times[0]) // 1000, int(times[-1]) // 1000, backwards)


def table_of(rows: list[tuple[Any, ...]]) -> Any:
    arrow = pyarrow()
    kinds = [column.split()[1] for column in SCHEMA.split(", ")]
    arrays = [
        arrow.array(values, arrow.type_for_alias(_TYPES[kind]))
        for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    return arrow.RecordBatch.from_arrays(arrays, names=list(COLUMNS))
