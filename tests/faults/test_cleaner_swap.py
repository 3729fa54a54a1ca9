"""The process is killed, or the power fails, at any file operation of a compaction: the log loses nothing."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.compaction import COMPACTED, CompactionBench
from tests.support.faulty_disk import FaultyDisk

from barnabas.log.compaction.job import CleaningJob, CleaningResult
from barnabas.log.compaction.rewriting import clean
from barnabas.log.disk import Data, Disk, FileHandle, RealDisk
from barnabas.log.log import Log
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER, read_records

CONFIG = replace(COMPACTED, segment_bytes=600)
# With a larger segment size than before, segments of a log are joined.
JOINING = replace(COMPACTED, segment_bytes=1300)
PRODUCER = {"producer_id": 7, "producer_epoch": 0}


class FlushedBench(CompactionBench):
    """Starts after a crash as if the whole log had been flushed: only its end is examined."""

    def _open(self) -> Log:
        self._marks = replace(self._marks, recovery_point=1 << 40)
        return super()._open()


class StoppedError(BaseException):
    """The process is killed here; nothing may catch this."""


class StoppingDisk(RealDisk):
    """Kills the process instead of doing an operation that changes the disk."""

    def __init__(self, stop_after: int) -> None:
        super().__init__()
        self.armed = False
        self._left = stop_after

    def _change(self) -> None:
        if self.armed:
            if self._left == 0:
                raise StoppedError
            self._left -= 1

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> FileHandle:
        if create:
            self._change()
        return super().open(path, write=write, create=create)

    def pwrite(self, fd: int, data: Data, position: int, /) -> int:  # type: ignore[override]
        self._change()
        return RealDisk.pwrite(fd, data, position)

    def truncate(self, fd: int, size: int, /) -> None:  # type: ignore[override]
        self._change()
        RealDisk.truncate(fd, size)

    def rename(self, source: Path, target: Path) -> None:
        self._change()
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self._change()
        super().unlink(path)


def fill(bench: CompactionBench) -> None:
    """Enough for several segments that become fewer, with a producer, transactions and tombstones."""
    for number in range(14):
        bench.put((b"key-%d" % (number % 5), b"%d" % number * 40), (b"other-%d" % number, None))
    bench.put((b"mine", b"1"), base_sequence=0, **PRODUCER)  # type: ignore[arg-type]
    for kind in (ABORT_MARKER, COMMIT_MARKER):
        bench.put(
            (b"t", b"%d" % kind), producer_id=8, producer_epoch=0, base_sequence=kind, transactional=True
        )
        bench.end_transaction(kind, 8)
    bench.put((b"mine", b"2"), (b"key-0", None))
    bench.log.roll()
    bench.put((b"key-1", b"active"))


def stops(run: Callable[[StoppingDisk], None], directory: Path, scratch: Path) -> Iterator[int]:
    """Repeat `run` on copies of the directory; each time the process is killed one operation later."""
    stop_at = 0
    while True:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(directory, scratch)
        try:
            run(StoppingDisk(stop_at))
        except StoppedError:
            yield stop_at
            stop_at += 1
        else:
            return


def check(bench: CompactionBench, expected: dict[bytes, tuple[int, bytes]], end: int) -> None:
    """What must be true after any crash; then cleaning can go on."""
    bench.log.update_high_watermark(bench.log.log_end_offset)
    assert not bench.failures
    assert not bench.log.corrupt_ranges
    assert bench.latest() == expected
    assert bench.log.log_end_offset == end
    assert not [
        path for path in bench.directory.iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")
    ]
    stored = [record.offset for _, batch in bench.batches() for record in read_records(batch)]
    assert [read.offset for read in bench.records()] == stored
    again = bench.put((b"mine", b"1"), base_sequence=0, **PRODUCER)  # type: ignore[arg-type]
    assert again.duplicate
    bench.clean()
    assert bench.latest() == expected


@pytest.mark.parametrize("start", [CompactionBench, FlushedBench])
def test_a_stop_at_any_operation_of_the_swap(tmp_path: Path, start: type[CompactionBench]) -> None:
    origin, scratch = tmp_path / "origin", tmp_path / "scratch"
    bench = CompactionBench(origin, CONFIG)
    fill(bench)
    expected, end = bench.latest(), bench.log.log_end_offset
    bench.close()

    def run(disk: StoppingDisk) -> None:
        victim = CompactionBench(scratch, JOINING, disk)
        victim.log.update_high_watermark(victim.log.log_end_offset)
        job = victim.job()
        assert job is not None
        result = clean(job, disk)
        assert any(len(group.bases) > 1 for group in result.groups)
        disk.armed = True
        assert victim.cleaner.finish(job, result)
        victim.save()

    count = 0
    for _ in stops(run, origin, scratch):
        survivor = start(scratch, CONFIG)
        check(survivor, expected, end)
        survivor.crash()
        count += 1
    assert count > 20


def test_a_stop_at_any_operation_of_the_worker(tmp_path: Path) -> None:
    origin, scratch = tmp_path / "origin", tmp_path / "scratch"
    bench = CompactionBench(origin, CONFIG)
    fill(bench)
    expected, end = bench.latest(), bench.log.log_end_offset
    bench.close()

    def run(disk: StoppingDisk) -> None:
        victim = CompactionBench(scratch, JOINING, disk)
        victim.log.update_high_watermark(victim.log.log_end_offset)
        job = victim.job()
        assert job is not None
        disk.armed = True
        clean(job, disk)

    count = 0
    for _ in stops(run, origin, scratch):
        survivor = CompactionBench(scratch, CONFIG)
        check(survivor, expected, end)
        survivor.crash()
        count += 1
    assert count > 20


def test_what_was_swapped_in_survives_a_power_failure(tmp_path: Path) -> None:
    disk = FaultyDisk()
    bench = CompactionBench(tmp_path, CONFIG, disk)
    fill(bench)
    bench.log.flush()
    expected, end = bench.latest(), bench.log.log_end_offset
    bench.clean(roll=False)
    bench.crash()
    disk.lose_power(tmp_path)
    bench.start(recovery_point=end)
    check(bench, expected, end)


@pytest.mark.parametrize("operation", ["pwrite", "fsync", "open", "rename", "fsync_dir"])
def test_a_disk_that_fails_while_swapping_never_loses_a_record(tmp_path: Path, operation: str) -> None:
    disk = FaultyDisk()
    bench = CompactionBench(tmp_path, CONFIG, disk)
    fill(bench)
    expected, end = bench.latest(), bench.log.log_end_offset
    for after in range(3):
        job = bench.job()
        assert job is not None
        fault = disk.fail(operation, after=after, times=1)
        done = _try(bench, job, disk)
        disk.heal()
        assert not done or fault.times == 1
        bench.crash()
        bench.start()
        bench.cleaner = bench.new_cleaner()
        bench.log.update_high_watermark(end)
        assert bench.latest() == expected
        bench.failures.clear()
    check(bench, expected, end)


def _try(bench: CompactionBench, job: CleaningJob, disk: Disk) -> bool:
    """One job, with the disk failing in the worker or in the swap."""
    try:
        result = clean(job, disk)
    except OSError as problem:
        result = CleaningResult(error=str(problem))
    done = bench.cleaner.finish(job, result)
    health = bench.cleaner.health()
    assert done or health.last_error is not None
    return done
