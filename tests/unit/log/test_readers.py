"""Who reads a file: slices are counted, and a file with readers is neither truncated nor closed while they
read."""

from pathlib import Path

import pytest
from tests.support.logs import LogBench, open_files_below

from barnabas.config.topic import TopicConfig
from barnabas.log.reading import LogSlice

ONE_SEGMENT = TopicConfig(file_delete_delay_ms=0)


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    bench = LogBench(tmp_path, ONE_SEGMENT)
    bench.fill(10)
    return bench


def read(bench: LogBench) -> LogSlice:
    return bench.log.read(0, 1 << 20, upper_offset=30, at_least_one=True)


def readers(bench: LogBench) -> int:
    return bench.log.active.readers.count


def inode(bench: LogBench) -> int:
    return bench.file(".log").stat().st_ino


def test_a_slice_is_a_reader_until_it_is_released_or_dropped(bench: LogBench) -> None:
    first, second = read(bench), read(bench)
    assert readers(bench) == 2
    first.release()
    first.release()
    assert first.file is None
    assert readers(bench) == 1
    del second
    assert readers(bench) == 0


def test_an_empty_slice_reads_nothing(bench: LogBench) -> None:
    piece = bench.log.read(30, 1 << 20, upper_offset=30, at_least_one=True)
    assert (piece.size, piece.file, readers(bench)) == (0, None, 0)
    piece.release()


def test_a_file_is_cut_in_place_only_without_readers(bench: LogBench) -> None:
    before = inode(bench)
    piece = read(bench)
    content = bench.bytes_of(piece)
    bench.log.truncate_to(21)
    assert inode(bench) != before
    assert bench.bytes_of(piece) == content
    # The reader has the old file, so the new one has none.
    assert readers(bench) == 0
    replaced = inode(bench)
    bench.log.truncate_to(12)
    assert inode(bench) == replaced
    assert [record.offset for record in bench.records()] == list(range(12))
    assert bench.bytes_of(piece) == content


def test_a_released_slice_does_not_make_a_truncation_copy(bench: LogBench) -> None:
    before = inode(bench)
    read(bench).release()
    bench.log.truncate_to(21)
    assert inode(bench) == before


def test_an_idle_file_stays_open_until_its_reader_is_done(bench: LogBench, tmp_path: Path) -> None:
    piece = read(bench)
    for _ in range(3):
        bench.log.release_idle()
    assert len(open_files_below(tmp_path)) == len(bench.disk.open_files) == 1
    piece.release()
    for _ in range(2):
        bench.log.release_idle()
    assert open_files_below(tmp_path) == []
