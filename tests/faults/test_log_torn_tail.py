"""A crash in the middle of a write: everything before the last batch is kept, and nothing else."""

import dataclasses
import os
from pathlib import Path

import pytest
from tests.support.logs import SMALL, LogBench

LARGE = dataclasses.replace(SMALL, segment_bytes=1 << 20)


def _last_batch_start(bench: LogBench) -> int:
    return [position for position, _ in bench.log.active.headers()][-1]


def test_the_log_is_cut_at_the_last_whole_batch_wherever_the_tail_is_torn(tmp_path: Path) -> None:
    bench = LogBench(tmp_path, LARGE)
    bench.fill(5)
    path = bench.file(".log")
    whole = path.read_bytes()
    start = _last_batch_start(bench)
    kept = bench.records()[:-3]
    for size in range(start, len(whole)):
        bench.crash()
        path.write_bytes(whole[:size])
        bench.start()
        assert bench.log.log_end_offset == 12, size
        assert bench.records() == kept
        assert path.stat().st_size == start
        assert bench.log.corrupt_ranges == []


@pytest.mark.parametrize(
    "tail", [bytes(1), bytes(60), bytes(61), bytes(5000), os.urandom(3000), b"\x02" * 500]
)
def test_zeros_and_garbage_after_the_last_batch_are_cut(tmp_path: Path, tail: bytes) -> None:
    bench = LogBench(tmp_path, LARGE)
    bench.fill(5)
    kept = bench.records()
    bench.crash()
    path = bench.file(".log")
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + tail)
    bench.start()
    assert bench.records() == kept
    assert path.stat().st_size == size
    bench.fill(1)
    assert [read.offset for read in bench.records()] == list(range(18))


def test_garbage_at_the_start_of_the_last_segment_leaves_it_empty(tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    bench.fill(30)
    kept = [read for read in bench.records() if read.offset < bench.log.active.base_offset]
    base = bench.log.active.base_offset
    assert 0 < base < bench.log.log_end_offset
    bench.crash()
    bench.file(".log", base).write_bytes(os.urandom(900))
    bench.start(recovery_point=base)
    assert bench.log.log_end_offset == base
    assert bench.records() == kept


def test_a_torn_tail_is_found_even_after_a_clean_stop(tmp_path: Path) -> None:
    """The marker says that the log was closed cleanly; the file says otherwise."""
    bench = LogBench(tmp_path, LARGE)
    bench.fill(5)
    kept = bench.records()[:-3]
    bench.close()
    path = bench.file(".log")
    path.write_bytes(path.read_bytes()[:-1])
    bench.start(clean=True)
    assert bench.records() == kept
    assert bench.log.log_end_offset == 12


def test_offsets_go_on_without_gap_or_repetition_after_many_torn_writes(tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    for round_number in range(1, 12):
        bench.fill(3)
        expected = bench.records()
        bench.crash()
        path = bench.file(".log", bench.log.active.base_offset)
        path.write_bytes(path.read_bytes() + bytes(range(round_number * 7)))
        bench.start()
        assert bench.records() == expected
    assert [read.offset for read in bench.records()] == list(range(bench.log.log_end_offset))


def test_preallocated_space_after_a_crash_is_not_taken_for_data(tmp_path: Path) -> None:
    bench = LogBench(tmp_path, dataclasses.replace(LARGE, preallocate=True))
    bench.fill(5)
    kept = bench.records()
    assert bench.file(".log").stat().st_size == LARGE.segment_bytes
    bench.restart(clean=False)
    assert bench.records() == kept
    bench.restart(clean=True)
    assert bench.records() == kept
