"""The segments of log directories: listed on the driver and read by tasks, without a broker.

Files are only read. Tasks must see the directories: they run on one machine, or the disk is shared. A broker
may run meanwhile; its active segment may then end with a batch that is just being written."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.ids import TopicPartition
from barnabas.log import names
from barnabas.log.checkpoints import read_offsets
from barnabas.log.disk import RealDisk
from barnabas.log.scan import Damaged, Verifier, Window
from barnabas.records.batch import crc_is_valid
from barnabas.spark.jobs.batch_rows import BatchRows, Stretch
from barnabas.spark.jobs.clients import JobError
from barnabas.spark.jobs.segment_indexes import check_indexes

# An index stores offsets relative to the base of the segment, in 32 bits.
OFFSETS_MAX = 1 << 31


class Segment(NamedTuple):
    """One .log file; its offsets are below `limit`, where the next one begins."""

    stretch: Stretch
    path: str
    limit: int


class SegmentWalk:
    """Spark calls it in a task with the numbers of the segments to check."""

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments = tuple(segments)

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from walked(self._segments[number])


def segments_of(directories: Iterable[Path], topics: Collection[str]) -> list[Segment]:
    """The segments of all partitions, or of those of `topics`, in the directories."""
    segments = [segment for directory in directories for segment in _in_directory(directory, topics)]
    if not segments:
        of_topics = f" of {', '.join(topics)}" if topics else ""
        raise JobError(
            f"There is no segment{of_topics} there: give the directory that contains directories such as"
            " orders-0 (log.dirs of the broker)."
        )
    return segments


def _in_directory(directory: Path, topics: Collection[str]) -> Iterator[Segment]:
    if not directory.is_dir():
        raise JobError(f"{directory} is not a directory that can be read.")
    disk = RealDisk()
    cleaned = read_offsets(disk, directory / names.CLEANER_OFFSETS)
    starts = read_offsets(disk, directory / names.LOG_STARTS)
    for child in sorted(directory.iterdir()):
        partition = parse(child)
        if partition is not None and (not topics or partition.topic in topics):
            yield from _of_partition(
                child.absolute(), partition, cleaned.get(partition, 0), starts.get(partition, 0)
            )


def parse(child: Path) -> TopicPartition | None:
    return names.parse_partition_directory(child.name) if child.is_dir() else None


def _of_partition(
    directory: Path, partition: TopicPartition, cleaned_to: int, log_start: int
) -> Iterator[Segment]:
    parsed = [(path, names.parse_offset_file(path.name)) for path in sorted(directory.iterdir())]
    logs = [(path, name[0]) for path, name in parsed if name is not None and name[1:] == (names.LOG, "")]
    for number, (path, base) in enumerate(logs):
        last = number + 1 == len(logs)
        limit = base + OFFSETS_MAX if last else min(base + OFFSETS_MAX, logs[number + 1][1])
        begins_at = max(logs[0][1], log_start)
        stretch = Stretch(str(directory.parent), *partition, base, begins_at, cleaned_to)
        yield Segment(stretch, str(path), limit)


def walked(segment: Segment) -> Iterator[Any]:
    """The rows of a segment; every byte is checked."""
    disk, path = RealDisk(), Path(segment.path)
    file = disk.open(path)
    window = Window(disk, file, disk.size(file.fd))
    rows = BatchRows(segment.stretch)
    positions: dict[int, tuple[int, int]] = {}
    for item in Verifier(window, segment.stretch.part, segment.limit, gaps=True).walk():
        if isinstance(item, Damaged):
            rows.fault("bytes", item.position, item.first_offset, _damage(window, item, path.name))
            continue
        position, header = item
        positions[position] = (header.last_offset, header.max_timestamp)
        rows.add(position, window.at(position, header.size), header)
        yield from rows.finished(all_of_them=False)
    for position, offset, detail in check_indexes(path, segment.stretch.part, positions):
        rows.fault("index", position, offset, detail)
    yield from rows.finished(all_of_them=True)


def _damage(window: Window, damaged: Damaged, name: str) -> str:
    if damaged.resumed is None:
        extent = f"{window.end - damaged.position} bytes from position {damaged.position} to the end"
    else:
        extent = f"{damaged.resumed - damaged.position} bytes at position {damaged.position}"
    return f"{name}: {extent}: {_reason(window, damaged.position)}"


def _reason(window: Window, position: int) -> str:
    header = window.header(position)
    if header is None:
        return "there is no batch header with magic 2 and a possible length"
    if not crc_is_valid(window.at(position, header.size), 0, header.size):
        return f"the batch at offset {header.base_offset} does not match its checksum"
    return (
        f"the batch has offsets {header.base_offset} to {header.last_offset} and leader epoch"
        f" {header.leader_epoch}, which do not fit its neighbours"
    )
