"""The records of segments, decoded by tasks, as a broker gives them to consumers with read_committed."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from barnabas.log import names
from barnabas.log.disk import RealDisk
from barnabas.log.scan import Verified, Verifier, Window
from barnabas.log.txn_index import TransactionIndex
from barnabas.records.arrow import RecordColumns, append_records
from barnabas.records.arrow_module import pyarrow
from barnabas.records.record_set import RecordSet
from barnabas.spark.jobs.segments import Segment

SCHEMA = (
    "place string, topic string, partition int, offset bigint, key binary, value binary,"
    " headers array<struct<key:string,value:binary>>"
)
_COLUMNS = ("topic", "partition", "offset", "key", "value", "headers")
ROWS_MAX = 20_000
BYTES_MAX = 4 << 20


class SegmentRecords:
    """Spark calls it in a task with the numbers of the segments to read."""

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments = tuple(segments)

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _read(self._segments[number])


def _read(segment: Segment) -> Iterator[Any]:
    """Damaged batches are skipped: SegmentWalk reports them."""
    disk, stretch = RealDisk(), segment.stretch
    file = disk.open(Path(segment.path))
    window = Window(disk, file, disk.size(file.fd))
    columns = RecordColumns(_COLUMNS, rows_max=ROWS_MAX, bytes_max=BYTES_MAX, check_crcs=False)
    aborted = _aborted(Path(segment.path).parent, stretch.part)
    for batch in Verifier(window, stretch.part, segment.limit, gaps=True).walk():
        if not isinstance(batch, Verified):
            continue
        data = window.at(batch.position, batch.header.size)
        begun = [(each.producer_id, each.first_offset) for each in aborted if _covers(each, batch)]
        first = max(batch.header.base_offset, stretch.begins_at)
        records = RecordSet(data, first, begun, read_committed=True, check_crcs=False)
        while append_records(columns, records) < batch.header.next_offset and columns.is_full:
            yield _finished(columns, segment)
        if columns.is_full:
            yield _finished(columns, segment)
    if columns.count:
        yield _finished(columns, segment)


def _covers(transaction: Any, batch: Verified) -> bool:
    is_inside = transaction.first_offset <= batch.header.base_offset <= transaction.last_offset
    return bool(is_inside and transaction.producer_id == batch.header.producer_id)


def _aborted(directory: Path, base: int) -> list[Any]:
    """The aborted transactions with records in a segment; their markers may be in a later one."""
    aborted = []
    for path in sorted(directory.glob(f"*{names.TXN_INDEX}")):
        aborted += TransactionIndex(RealDisk(), path).entries() or []
    return [each for each in aborted if each.last_offset >= base]


def _finished(columns: RecordColumns, segment: Segment) -> Any:
    batch = columns.finish(segment.stretch.topic, segment.stretch.partition)
    arrow = pyarrow()
    place = arrow.repeat(segment.stretch.place, batch.num_rows)
    return arrow.RecordBatch.from_arrays([place, *batch.columns], names=["place", *_COLUMNS])
