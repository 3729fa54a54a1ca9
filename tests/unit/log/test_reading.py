"""What a fetch returns: complete batches from the right one on, within the limits."""

import dataclasses
import os
from pathlib import Path

import pytest
from tests.support.logs import SMALL, LogBench

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.batch import iter_headers
from barnabas.records.builder import build_batch
from barnabas.records.validation import BatchRules, validate

LARGE = dataclasses.replace(SMALL, segment_bytes=1 << 20)


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    bench = LogBench(tmp_path, LARGE)
    bench.fill(10)
    return bench


def _first_offsets(bench: LogBench, offset: int, bytes_max: int = 1 << 20, upper: int = 30) -> list[int]:
    piece = bench.log.read(offset, bytes_max, upper_offset=upper, at_least_one=True)
    return [header.base_offset for _, header in iter_headers(bench.bytes_of(piece))]


def test_a_slice_begins_with_the_batch_that_holds_the_offset(bench: LogBench) -> None:
    assert _first_offsets(bench, 0) == list(range(0, 30, 3))
    for offset in range(30):
        assert _first_offsets(bench, offset)[0] == offset // 3 * 3


def test_a_slice_ends_below_the_upper_offset(bench: LogBench) -> None:
    for upper in range(1, 30):
        assert _first_offsets(bench, 0, upper=upper) == list(range(0, upper // 3 * 3, 3))


def test_at_least_one_batch_is_whole_if_asked_for(bench: LogBench) -> None:
    whole = bench.log.read(3, 1, upper_offset=30, at_least_one=True)
    assert [header.base_offset for _, header in iter_headers(bench.bytes_of(whole))] == [3]
    cut = bench.log.read(3, 50, upper_offset=30, at_least_one=False)
    assert cut.size == 50
    assert bench.log.read(3, 0, upper_offset=30, at_least_one=False).size == 0


def test_the_last_batch_may_be_cut_by_the_limit(bench: LogBench) -> None:
    piece = bench.log.read(0, 250, upper_offset=30, at_least_one=True)
    assert piece.size == 250


def test_there_is_nothing_at_the_end_and_an_error_outside(bench: LogBench) -> None:
    assert bench.log.read(30, 100, upper_offset=30, at_least_one=True).size == 0
    assert bench.log.read(9, 100, upper_offset=9, at_least_one=True).size == 0
    bench.log.delete_records_before(4)
    for offset in (-1, 3, 31):
        with pytest.raises(KafkaError) as caught:
            bench.log.read(offset, 100, upper_offset=30, at_least_one=True)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert _first_offsets(bench, 4)[0] == 3


def test_a_slice_outlives_its_segment(bench: LogBench) -> None:
    expected = bench.bytes_of(bench.log.read(0, 1 << 20, upper_offset=30, at_least_one=True))
    piece = bench.log.read(0, 1 << 20, upper_offset=30, at_least_one=True)
    bench.log.delete_records_before(30)
    bench.log.roll()
    bench.log.apply_retention(bench.clock.now_ms())
    bench.trash.empty()
    assert not bench.file(".log").exists()
    assert bench.bytes_of(piece) == expected
    fd = piece.file.fileno() if piece.file else -1
    del piece
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_slice_outlives_a_truncation(bench: LogBench) -> None:
    piece = bench.log.read(0, 1 << 20, upper_offset=30, at_least_one=True)
    expected = bench.bytes_of(piece)
    bench.log.truncate_to(9)
    bench.fill(2, records=1)
    assert bench.bytes_of(piece) == expected
    assert [read.offset for read in bench.records()] == list(range(11))


def test_readers_that_follow_the_end_see_every_batch(bench: LogBench) -> None:
    offset = 30
    for _ in range(30):
        bench.fill(1)
        end = bench.log.log_end_offset
        assert _first_offsets(bench, offset, upper=end) == [offset]
        offset = end


def test_reading_over_the_border_of_segments(tmp_path: Path) -> None:
    bench = LogBench(tmp_path, SMALL)
    bench.fill(60)
    assert len(bench.log.segments) > 3
    for base in bench.log.bases[1:]:
        assert _first_offsets(bench, base, upper=180)[0] == base
        assert _first_offsets(bench, base - 1, upper=180) == [base - 3]


def test_the_bound_of_a_slice_is_above_all_its_offsets(bench: LogBench) -> None:
    for bytes_max in (1, 300, 500, 1 << 20):
        piece = bench.log.read(0, bytes_max, upper_offset=30, at_least_one=True)
        last = [header.last_offset for _, header in iter_headers(bench.bytes_of(piece))][-1]
        assert last < bench.log.upper_bound_of(piece) <= 30


def test_offsets_by_time(tmp_path: Path) -> None:
    bench = LogBench(tmp_path, SMALL)
    for timestamp in (100, 300, 200, 300, 250, 400):
        bench.append(b"a", b"b", timestamp=timestamp, compression=3)
    find = bench.log.offset_for_timestamp
    assert [(at, entry.offset) for at in (0, 100, 101, 300, 301, 400) if (entry := find(at))] == [
        (0, 0),
        (100, 0),
        (101, 2),
        (300, 2),
        (301, 10),
        (400, 10),
    ]
    assert find(401) is None
    newest = bench.log.max_timestamp_offset()
    assert newest == (400, 10, 0)
    bench.log.delete_records_before(3)
    assert find(0) == (300, 3, 0)


def test_a_timestamp_finds_the_exact_record_in_a_batch(tmp_path: Path) -> None:
    bench = LogBench(tmp_path, SMALL)
    times = [50, 70, 60, 90, 80]
    for codec in range(5):
        data = build_batch([(at, None, b"v", []) for at in times], compression=codec)
        bench.log.append_as_leader(validate(memoryview(data), BatchRules.of(SMALL), bench.clock.now_ms()), 4)
    assert bench.log.offset_for_timestamp(61) == (70, 1, 4)
    assert bench.log.offset_for_timestamp(71) == (90, 3, 4)
    assert bench.log.max_timestamp_offset() == (90, 3, 4)


def test_an_empty_log_has_no_times(tmp_path: Path) -> None:
    bench = LogBench(tmp_path, SMALL)
    assert bench.log.offset_for_timestamp(0) is None
    assert bench.log.max_timestamp_offset() is None
