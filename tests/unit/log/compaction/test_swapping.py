"""Replacing segments by rewritten ones: after a crash at any step all old ones or all new ones are there."""

import errno
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.faulty_disk import FaultyDisk
from tests.support.logs import SMALL, LogBench

from barnabas.errors import KafkaError
from barnabas.log import names
from barnabas.log.compaction.swapping import replace_segments
from barnabas.log.segment import Segment


def _cleaned_copy(bench: LogBench, keep_every: int) -> Segment:
    """A segment of .cleaned files with every n-th batch of the first two segments, as a cleaner makes it."""
    old = bench.log.segments[:2]
    cleaned = Segment(bench.disk, bench.directory / "work", 0, bench.config, 0)
    (bench.directory / "work").mkdir()
    cleaned.create(preallocate=False)
    number = 0
    for segment in old:
        for position, header in segment.headers():
            if number % keep_every == 0:
                data = segment.read_batch(position, header.size)
                cleaned.append(data, header.last_offset, header.max_timestamp)
            number += 1
    cleaned.finish()
    cleaned.release()
    for suffix in names.SEGMENT_SUFFIXES:
        path = names.segment_file(bench.directory / "work", 0, suffix)
        path.rename(bench.directory / (path.name + names.CLEANED))
    shutil.rmtree(bench.directory / "work")
    replacement = Segment(bench.disk, bench.directory, 0, bench.config, 0)
    replacement.size = cleaned.size
    replacement.next_offset = cleaned.next_offset
    return replacement


def _swap(bench: LogBench) -> None:
    replacement = _cleaned_copy(bench, keep_every=3)
    replace_segments(bench.log, [replacement], bench.log.segments[:2])


def test_the_new_segment_replaces_the_old_ones(tmp_path: Path) -> None:
    bench = LogBench(tmp_path, SMALL)
    bench.fill(60)
    before = bench.records()
    border = bench.log.bases[2]
    _swap(bench)
    expected = [read for read in before if read.offset >= border or read.offset // 3 % 3 == 0]
    assert bench.records() == expected
    assert bench.log.bases[:2] == [0, border]
    bench.trash.empty()
    for clean in (True, False):
        bench.restart(clean=clean)
        assert bench.records() == expected
        assert bench.log.corrupt_ranges == []


@pytest.mark.parametrize("step", range(13))
def test_a_crash_at_any_rename(tmp_path: Path, step: int) -> None:
    disk = FaultyDisk()
    bench = LogBench(tmp_path, SMALL, disk)
    bench.fill(60)
    before = bench.records()
    border = bench.log.bases[2]
    after = [read for read in before if read.offset >= border or read.offset // 3 % 3 == 0]
    replacement = _cleaned_copy(bench, keep_every=3)
    disk.fail("rename", errno.EIO, after=step)
    with suppress(KafkaError):
        replace_segments(bench.log, [replacement], bench.log.segments[:2])
    disk.heal()
    bench.crash()
    bench.start()
    recovered = bench.records()
    assert recovered in (before, after)
    assert (recovered == after) == (step >= len(names.SEGMENT_SUFFIXES))
    assert not [path for path in bench.directory.iterdir() if path.suffix in (names.CLEANED, names.SWAP)]
    bench.fill(2)
    assert bench.records()[: len(recovered)] == recovered
