"""The segments of log directories: found on the driver, walked by tasks, with no broker in sight.

Files are only read. The directories must be where the tasks are: on one machine, or on a disk they share.
A broker may run meanwhile; the end of its active segment may then be a batch that is just being written."""

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

# An index holds offsets in 32 bits, counted from the segment's first.
OFFSETS_MAX = 1 << 31


class Segment(NamedTuple):
    """One .log file; no offset of it reaches `limit`, where the next begins."""

    stretch: Stretch
    path: str
    limit: int


class SegmentWalk:
    """Called by Spark in a task with the numbers of the segments it is to walk."""

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments = tuple(segments)

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from walked(self._segments[number])


def segments_of(directories: Iterable[Path], topics: Collection[str]) -> list[Segment]:
    """The segments of all partitions, or of those of `topics`, in the directories."""
    found = [segment for directory in directories for segment in _in_directory(directory, topics)]
    if not found:
        of_topics = f" of {', '.join(topics)}" if topics else ""
        raise JobError(
            f"There is no segment{of_topics} there: give the directory that holds directories such as"
            " orders-0 (log.dirs of the broker)."
        )
    return found


def _in_directory(directory: Path, topics: Collection[str]) -> Iterator[Segment]:
    if not directory.is_dir():
        raise JobError(f"{directory} is no directory that can be read.")
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
    logs = [(path, found[0]) for path, found in parsed if found is not None and found[1:] == (names.LOG, "")]
    for number, (path, base) in enumerate(logs):
        last = number + 1 == len(logs)
        limit = base + OFFSETS_MAX if last else min(base + OFFSETS_MAX, logs[number + 1][1])
        begins_at = max(logs[0][1], log_start)
        stretch = Stretch(str(directory.parent), *partition, base, begins_at, cleaned_to)
        yield Segment(stretch, str(path), limit)


def walked(segment: Segment) -> Iterator[Any]:
    """The rows of a segment: every byte of it is looked at."""
    disk, path = RealDisk(), Path(segment.path)
    file = disk.open(path)
    window = Window(disk, file, disk.size(file.fd))
    rows = BatchRows(segment.stretch)
    positions: dict[int, tuple[int, int]] = {}
    for found in Verifier(window, segment.stretch.part, segment.limit, gaps=True).walk():
        if isinstance(found, Damaged):
            rows.fault("bytes", found.position, found.first_offset, _damage(window, found, path.name))
            continue
        position, header = found
        positions[position] = (header.last_offset, header.max_timestamp)
        rows.add(position, window.at(position, header.size), header)
        yield from rows.finished(all_of_them=False)
    for position, offset, told in check_indexes(path, segment.stretch.part, positions):
        rows.fault("index", position, offset, told)
    yield from rows.finished(all_of_them=True)


def _damage(window: Window, found: Damaged, name: str) -> str:
    if found.resumed is None:
        reach = f"{window.end - found.position} bytes from position {found.position} to the end"
    else:
        reach = f"{found.resumed - found.position} bytes at position {found.position}"
    return f"{name}: {reach}: {_reason(window, found.position)}"


def _reason(window: Window, position: int) -> str:
    header = window.header(position)
    if header is None:
        return "no batch of magic 2 with a length that fits can begin so"
    if not crc_is_valid(window.at(position, header.size), 0, header.size):
        return f"the batch at offset {header.base_offset} does not match its checksum"
    return (
        f"the batch says offsets {header.base_offset} to {header.last_offset} in leader epoch"
        f" {header.leader_epoch}, which does not fit its neighbours"
    )
