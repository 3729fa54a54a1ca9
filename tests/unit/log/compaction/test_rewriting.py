"""What compaction keeps of a log, record by record and batch by batch."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.compaction import COMPACTED, CompactionBench

from barnabas.log.compaction.job import CleaningJob
from barnabas.log.compaction.rewriting import clean
from barnabas.log.compaction.source import Throttle
from barnabas.log.disk import RealDisk
from barnabas.log.rebuild import examine
from barnabas.records.batch import NO_TIMESTAMP

ROOMY = replace(COMPACTED, segment_bytes=100_000)


@pytest.fixture
def bench(tmp_path: Path) -> CompactionBench:
    return CompactionBench(tmp_path, ROOMY)


def test_the_latest_value_of_each_key_stays_at_its_offset(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"), (b"b", b"1"))
    bench.put((b"a", b"2"), (b"c", b"1"))
    bench.put((b"a", b"3"))
    result = bench.clean()
    assert bench.pairs() == [(1, b"1"), (3, b"1"), (4, b"3")]
    assert result is not None and result.end_offset == 5
    assert bench.log.log_end_offset == 5


def test_the_active_segment_is_left_alone(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"))
    bench.log.roll()
    bench.put((b"a", b"2"), (b"a", b"3"))
    bench.clean(roll=False)
    assert bench.pairs() == [(0, b"1"), (1, b"2"), (2, b"3")]


def test_what_was_cleaned_before_is_replaced_by_newer_records(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"), (b"b", b"1"))
    bench.clean()
    bench.put((b"a", b"2"))
    bench.clean()
    assert bench.pairs() == [(1, b"1"), (2, b"2")]


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_that_loses_nothing_is_the_same_to_the_byte(tmp_path: Path, codec: int) -> None:
    bench = CompactionBench(tmp_path, ROOMY)
    bench.put((b"gone", b"1"), (b"a", b"1"), compression=codec)
    bench.put((b"b", b"x" * 300), (b"c", b"y" * 300), compression=codec, leader_epoch=4)
    bench.put((b"gone", b"2"))
    before = [batch for _, batch in bench.batches()]
    bench.clean()
    after = [batch for _, batch in bench.batches()]
    assert after[1:] == before[1:]
    assert after[0] != before[0]


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("log_append_time", [None, 1_700_000_000_123])
def test_a_batch_that_loses_records_keeps_its_fields(
    tmp_path: Path, codec: int, log_append_time: int | None
) -> None:
    bench = CompactionBench(tmp_path, ROOMY)
    rows = [(b"a", b"1"), (b"b", b"2" * 50), (b"a", b"3" * 50)]
    if log_append_time is not None:
        bench.config = replace(ROOMY, message_timestamp_type="LogAppendTime")
    bench.put(*rows, compression=codec, producer_id=9, producer_epoch=3, base_sequence=17)
    bench.put((b"z", b"end"))
    before = bench.headers()[0]
    bench.clean()
    after = bench.headers()[0]
    assert bench.pairs()[:2] == [(1, b"2" * 50), (2, b"3" * 50)]
    assert after.count == 2
    assert after._replace(length=0, crc=0, count=0) == before._replace(length=0, crc=0, count=0)
    assert after.compression == codec


def test_max_timestamp_is_that_of_what_is_left(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"))
    start = bench.clock.now_ms()
    bench.clock.advance(5000)
    bench.put((b"b", b"1"))
    bench.clock.advance(-6000)
    bench.put((b"b", b"2"))
    bench.put((b"z", b"end"))
    bench.clean()
    assert [header.max_timestamp - start for header in bench.headers()] == [0, -1000, -1000]
    assert bench.log.segments[0].max_timestamp == start
    newest = bench.log.max_timestamp_offset()
    assert newest is not None and newest.offset == 0


def test_records_without_key_are_dropped(bench: CompactionBench) -> None:
    bench.put((None, b"no place here"), (b"a", b"1"))
    bench.put((b"z", b"end"))
    bench.clean()
    assert bench.pairs() == [(1, b"1"), (2, b"end")]


# -- tombstones


def test_a_tombstone_is_removed_after_its_horizon(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"), (b"b", b"1"))
    bench.put((b"a", None))
    tombstone_at = bench.clock.now_ms()
    bench.put((b"z", b"end"))
    bench.clock.advance(10)
    bench.clean()
    marked = bench.headers()[1]
    assert marked.has_delete_horizon
    assert marked.base_timestamp == tombstone_at + 10 + ROOMY.delete_retention_ms
    assert marked.max_timestamp == tombstone_at
    assert [record.timestamp for record in bench.all_records()] == [tombstone_at] * 3
    assert bench.pairs() == [(1, b"1"), (2, None), (3, b"end")]

    bench.clock.advance(ROOMY.delete_retention_ms - 1)
    bench.put((b"y", b"1"))
    bench.clean()
    assert (2, None) in bench.pairs()
    assert bench.headers()[1] == marked, "the horizon is set once"

    bench.clock.advance(1)
    bench.put((b"x", b"1"))
    bench.clean()
    assert bench.pairs() == [(1, b"1"), (3, b"end"), (4, b"1"), (5, b"1")]


@pytest.mark.parametrize("codec", range(5))
def test_a_horizon_does_not_change_the_records_beside_the_tombstone(tmp_path: Path, codec: int) -> None:
    bench = CompactionBench(tmp_path, ROOMY)
    bench.put((b"a", b"1"), (b"b", None), (b"c", b"3"), compression=codec)
    before = bench.all_records()
    bench.clean()
    assert bench.all_records() == before
    assert bench.headers()[0].has_delete_horizon


def test_an_endless_delete_retention_keeps_tombstones(tmp_path: Path) -> None:
    bench = CompactionBench(tmp_path, replace(ROOMY, delete_retention_ms=(1 << 63) - 1))
    for number in range(3):
        bench.put((b"a", None), (b"b", b"%d" % number))
        bench.clean()
        bench.clock.advance(10**12)
    assert bench.pairs()[0] == (4, None)


def test_a_newer_value_outlives_the_tombstone_of_its_key(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"))
    bench.put((b"a", None))
    bench.put((b"a", b"2"))
    bench.clean()
    assert bench.pairs() == [(2, b"2")]


# -- the map


def test_a_full_map_cleans_up_to_its_last_key(bench: CompactionBench) -> None:
    bench.cleaner.settings = replace(bench.cleaner.settings, map_bytes=24 * 3, map_load_factor=0.67)
    bench.put((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"c", b"2"), (b"a", b"3"))
    first = bench.clean()
    assert first is not None and first.end_offset == 3
    assert bench.pairs() == [(1, b"1"), (2, b"2"), (3, b"1"), (4, b"2"), (5, b"3")]
    second = bench.clean()
    assert second is not None and second.end_offset == 6
    assert bench.pairs() == [(1, b"1"), (4, b"2"), (5, b"3")]
    assert bench.clean() is None


def test_a_map_always_has_a_free_entry(bench: CompactionBench) -> None:
    bench.cleaner.settings = replace(bench.cleaner.settings, map_bytes=24 * 3, map_load_factor=1.0)
    bench.put((b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    result = bench.clean()
    assert result is not None and result.end_offset == 3


# -- producers


def test_the_last_batch_of_a_producer_stays_even_if_empty(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"), (b"b", b"1"), producer_id=5, producer_epoch=2, base_sequence=0)
    bench.put((b"a", b"2"), (b"b", b"2"), producer_id=5, producer_epoch=2, base_sequence=2, compression=1)
    bench.put((b"a", b"3"), (b"b", b"3"))
    bench.clean()
    empty, full = bench.headers()
    assert (empty.base_offset, empty.last_offset, empty.count, empty.compression) == (2, 3, 0, 0)
    assert (empty.producer_id, empty.producer_epoch, empty.last_sequence) == (5, 2, 3)
    assert empty.base_timestamp == NO_TIMESTAMP
    assert full.base_offset == 4


@pytest.mark.parametrize("clean_stop", [True, False])
def test_producers_go_on_after_cleaning_and_a_restart(bench: CompactionBench, clean_stop: bool) -> None:
    bench.put((b"a", b"1"), producer_id=5, producer_epoch=0, base_sequence=0)
    bench.put((b"a", b"2"))
    bench.clean()
    bench.restart(clean=clean_stop)
    again = bench.put((b"a", b"1"), producer_id=5, producer_epoch=0, base_sequence=0)
    assert (again.duplicate, again.first_offset) == (True, 0)
    assert not bench.put((b"a", b"3"), producer_id=5, producer_epoch=0, base_sequence=1).duplicate


def test_an_emptied_batch_is_removed_when_its_producer_has_written_more(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"), producer_id=5, producer_epoch=0, base_sequence=0)
    bench.put((b"a", b"2"))
    bench.clean()
    assert [header.base_offset for header in bench.headers()] == [0, 1]
    bench.put((b"b", b"2"), producer_id=5, producer_epoch=0, base_sequence=1)
    bench.clean()
    assert [header.base_offset for header in bench.headers()] == [1, 2]


# -- segments


def test_segments_are_joined_up_to_the_size_of_one(tmp_path: Path) -> None:
    bench = CompactionBench(tmp_path, replace(COMPACTED, segment_bytes=400))
    for number in range(40):
        bench.put((b"key-%d" % (number % 2), b"%03d" % number * 10))
    assert len(bench.log.segments) > 8
    for number in range(4):
        bench.put((b"again", b"%d" % number))
        bench.clean()
    assert len(bench.log.segments) <= 3
    assert all(segment.size <= 400 for segment in bench.log.segments)
    assert bench.latest().keys() == {b"key-0", b"key-1", b"again"}


def test_the_last_batch_of_a_segment_stays_even_if_empty(tmp_path: Path) -> None:
    """After a crash in the middle of the swap it shows which segments the new one replaces."""
    bench = CompactionBench(tmp_path, replace(COMPACTED, segment_bytes=250))
    for number in range(6):
        bench.put((b"a", b"%d" % number * 50), (b"a", b"%d" % number * 50))
    before = [segment.base_offset for segment in bench.log.segments]
    assert len(before) == 6
    bench.clean()
    assert [(header.base_offset, header.last_offset, header.count) for header in bench.headers()] == [
        (base, base + 1, 0 if base < 10 else 1) for base in before
    ]


def test_joined_segments_stay_within_relative_offsets(tmp_path: Path) -> None:
    bench = CompactionBench(tmp_path, ROOMY)
    bench.put((b"a", b"1"))
    bench.log.roll()
    bench.put((b"b", b"1"))
    bench.log.roll()
    job = bench.job()
    assert job is not None
    first, second, active = job.segments
    far = replace(job, segments=(first, second._replace(next_offset=2**31 + 1), active))
    assert [group.bases for group in clean(job, RealDisk()).groups] == [(0, 1)]
    assert clean(far, RealDisk()).groups == (), "each stays for itself, and so nothing changes"


def test_the_indexes_are_as_recovery_would_make_them(tmp_path: Path) -> None:
    bench = CompactionBench(tmp_path, replace(ROOMY, index_interval_bytes=150))
    for number in range(60):
        bench.put((b"key-%d" % (number % 40), b"%d" % number * 20))
        bench.clock.advance(1)
    bench.clean()
    segment = bench.log.segments[0]
    examined = examine(segment, segment.next_offset, gaps=True, last=False)
    segment.file()
    assert len(examined.entries) > 10
    assert [segment.index.get(slot) for slot in range(len(segment.index))] == examined.entries
    times = [segment.time_index.get(slot) for slot in range(len(segment.time_index))]
    assert times[: len(examined.time_entries)] == examined.time_entries
    assert times[-1] == (segment.max_timestamp, segment.max_timestamp_offset)


def test_every_offset_can_still_be_fetched(tmp_path: Path) -> None:
    bench = CompactionBench(tmp_path, COMPACTED)
    for number in range(50):
        bench.put((b"key-%d" % (number * number % 17), b"%d" % number))
    bench.clean()
    kept = [record.offset for record in bench.all_records()]
    for offset in range(bench.log.log_end_offset):
        following = bench.records(offset)
        assert [read.offset for read in following] == [other for other in kept if other >= offset]


def test_a_reader_keeps_the_old_bytes(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"))
    bench.put((b"a", b"2"))
    bench.log.roll()
    piece = bench.log.read(0, 10_000, upper_offset=2, at_least_one=True)
    before = bench.bytes_of(piece)
    bench.clean()
    bench.trash.empty(all_now=True)
    assert bench.bytes_of(piece) == before


def test_a_batch_larger_than_the_window_is_cleaned(tmp_path: Path) -> None:
    bench = CompactionBench(tmp_path, replace(ROOMY, segment_bytes=1 << 23, max_message_bytes=1 << 22))
    bench.put((b"a", b"x" * (3 << 20)), (b"b", b"1"))
    bench.put((b"b", b"2"))
    bench.clean()
    assert [(record.offset, len(record.value or b"")) for record in bench.all_records()] == [
        (0, 3 << 20),
        (2, 1),
    ]


# -- the rest


def test_a_job_survives_json(bench: CompactionBench) -> None:
    bench.put((b"a", b"1"), producer_id=5, producer_epoch=0, base_sequence=0)
    bench.log.roll()
    job = bench.job()
    assert job is not None
    damaged = job.segments[0]._replace(bad=((1, 2), (5, 9)))
    job = replace(job, segments=(damaged, *job.segments[1:]))
    assert CleaningJob.from_json(job.to_json()) == job


def test_reading_and_writing_are_throttled(bench: CompactionBench) -> None:
    bench.put((b"a", b"x" * 1000))
    bench.put((b"b", b"x" * 1000))
    bench.log.roll()
    job = bench.job()
    assert job is not None
    slept: list[float] = []
    clock = [0.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    result = clean(job, RealDisk(), Throttle(1000.0, lambda: clock[0], sleep))
    touched = result.bytes_read + job.segments[0].size
    assert sum(slept) == pytest.approx(touched / 1000)
