"""What a log promises about its segments: when it creates one, which it deletes, and how it is truncated."""

import dataclasses
from pathlib import Path

import pytest
from tests.support.logs import SMALL, LogBench

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.log.errors import UnexpectedOffsetError
from barnabas.log.scan import Window
from barnabas.records.builder import build_batch

LARGE = dataclasses.replace(SMALL, segment_bytes=1 << 20)
HOUR_MS = 3_600_000


def _bench(tmp_path: Path, **changes: object) -> LogBench:
    return LogBench(tmp_path, dataclasses.replace(LARGE, **changes))  # type: ignore[arg-type]


# -- appending


def test_a_batch_is_stamped_with_its_offset_and_epoch(tmp_path: Path) -> None:
    bench = _bench(tmp_path)
    bench.append(b"a", b"b", epoch=3)
    result = bench.append(b"c", epoch=5)
    assert (result.first_offset, result.last_offset, result.log_append_time) == (2, 2, -1)
    assert (result.log_start_offset, result.duplicate) == (0, False)
    headers = [header for _, header in bench.log.active.headers()]
    assert [(header.base_offset, header.leader_epoch) for header in headers] == [(0, 3), (2, 5)]
    assert bench.log.leader_epochs.entries == [(3, 0), (5, 2)]


def test_log_append_time_is_returned(tmp_path: Path) -> None:
    bench = _bench(tmp_path, message_timestamp_type="LogAppendTime")
    assert bench.append(b"a", timestamp=5).log_append_time == bench.clock.now_ms()


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_bytes=1000)
    with pytest.raises(KafkaError) as caught:
        bench.append(b"x" * 1000)
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert bench.log.size == 0


def test_a_follower_takes_batches_as_they_are(tmp_path: Path) -> None:
    leader, follower = _bench(tmp_path / "leader"), _bench(tmp_path / "follower", segment_bytes=300)
    for epoch in (0, 0, 1, 4):
        leader.append(b"a", b"b", epoch=epoch)
    leader.append(b"c", producer_id=5, producer_epoch=0, base_sequence=0, epoch=4)
    data = leader.file(".log").read_bytes()
    cut = data + data[:40]
    result = follower.log.append_as_follower(memoryview(bytearray(cut)))
    assert (result.first_offset, result.last_offset) == (0, 8)
    assert follower.records() == leader.records()
    assert len(follower.log.segments) > 1
    assert follower.log.leader_epochs.entries == leader.log.leader_epochs.entries
    assert follower.log.producers.entries[5].last_sequence == 0
    with pytest.raises(UnexpectedOffsetError):
        follower.log.append_as_follower(memoryview(bytearray(data)))


def test_a_follower_refuses_a_corrupt_batch(tmp_path: Path) -> None:
    bench = _bench(tmp_path)
    data = build_batch([(0, None, b"v", [])])
    data[-1] ^= 1
    with pytest.raises(KafkaError) as caught:
        bench.log.append_as_follower(memoryview(data))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


# -- rolling


def test_a_segment_rolls_before_it_grows_over_its_size(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_bytes=1000)
    bench.fill(40)
    assert len(bench.log.segments) > 2
    assert all(700 < segment.size <= 1000 for segment in bench.log.segments[:-1])
    assert [read.offset for read in bench.records()] == list(range(120))


def test_a_segment_rolls_when_a_batch_is_newer_than_its_first_by_segment_ms(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_ms=HOUR_MS)
    start = bench.clock.now_ms() - 10 * HOUR_MS
    for timestamp in (start, start + HOUR_MS, start + HOUR_MS + 1, start, start + 2 * HOUR_MS + 2):
        bench.append(b"v", timestamp=timestamp)
    assert bench.log.bases == [0, 2, 4]


def test_without_timestamps_the_clock_rolls(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_ms=HOUR_MS)
    bench.append(b"v", timestamp=-1)
    bench.clock.advance(HOUR_MS)
    bench.append(b"v", timestamp=-1)
    bench.clock.advance(1)
    bench.append(b"v", timestamp=-1)
    assert bench.log.bases == [0, 2]


def test_jitter_rolls_earlier_never_later(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_ms=HOUR_MS, segment_jitter_ms=HOUR_MS // 2)
    for _ in range(20):
        bench.append(b"v")
        bench.log.roll()
    limits = {segment.roll_ms for segment in bench.log.segments}
    assert all(HOUR_MS // 2 < limit <= HOUR_MS for limit in limits) and len(limits) > 1


def test_compaction_lag_bounds_the_age_of_the_active_segment(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_ms=HOUR_MS, max_compaction_lag_ms=1000, cleanup_compact=True)
    assert bench.log.active.roll_ms == 1000


def test_offsets_too_far_from_the_base_roll(tmp_path: Path) -> None:
    bench = _bench(tmp_path)
    far = 2**31
    for base in (0, far - 1, far):
        data = build_batch([(0, None, b"v", [])], base_offset=base, leader_epoch=0)
        bench.log.append_as_follower(memoryview(data))
    assert bench.log.bases == [0, far]


def test_a_quiet_segment_can_be_rolled_by_the_clock(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_ms=HOUR_MS)
    assert not bench.log.maybe_roll(bench.clock.now_ms() + 2 * HOUR_MS)
    bench.append(b"v")
    assert not bench.log.maybe_roll(bench.clock.now_ms() + HOUR_MS)
    assert bench.log.maybe_roll(bench.clock.now_ms() + HOUR_MS + 1)
    assert bench.log.bases == [0, 1]


def test_new_settings_apply_to_the_active_segment(tmp_path: Path) -> None:
    bench = _bench(tmp_path)
    bench.fill(5)
    bench.log.update_config(dataclasses.replace(LARGE, segment_bytes=200))
    bench.fill(2)
    assert bench.log.bases == [0, 15, 18]


# -- retention


def test_segments_are_deleted_by_age_and_the_active_one_is_rolled_first(tmp_path: Path) -> None:
    bench = _bench(tmp_path, retention_ms=HOUR_MS)
    bench.append(b"old")
    bench.log.roll()
    bench.clock.advance(HOUR_MS)
    bench.append(b"new")
    assert bench.log.apply_retention(bench.clock.now_ms()) == 0
    assert bench.log.apply_retention(bench.clock.now_ms() + 1) == 1
    assert (bench.log.log_start_offset, bench.log.bases) == (1, [1])
    assert bench.log.apply_retention(bench.clock.now_ms() + 2 * HOUR_MS) == 1
    assert (bench.log.log_start_offset, bench.log.log_end_offset, bench.log.bases) == (2, 2, [2])
    assert bench.log.apply_retention(bench.clock.now_ms() + 9 * HOUR_MS) == 0
    assert bench.append(b"next").first_offset == 2


def test_age_is_that_of_the_newest_record_not_of_the_file(tmp_path: Path) -> None:
    bench = _bench(tmp_path, retention_ms=HOUR_MS)
    bench.append(b"a", timestamp=bench.clock.now_ms())
    bench.append(b"b", timestamp=5)
    bench.log.roll()
    bench.restart(clean=True)
    assert bench.log.apply_retention(bench.clock.now_ms()) == 0


def test_segments_are_deleted_by_size_oldest_first(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_bytes=1000, retention_ms=-1)
    bench.fill(40)
    sizes = [segment.size for segment in bench.log.segments]
    limit = sum(sizes[2:])
    bench.log.update_config(dataclasses.replace(bench.config, retention_bytes=limit + 1))
    assert bench.log.apply_retention(bench.clock.now_ms()) == 1
    bench.log.update_config(dataclasses.replace(bench.config, retention_bytes=limit))
    assert bench.log.apply_retention(bench.clock.now_ms()) == 1
    assert bench.log.size == limit


def test_nothing_at_or_above_the_high_watermark_is_deleted(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_bytes=1000, retention_bytes=0)
    bench.fill(30)
    bench.log.update_high_watermark(bench.log.bases[1] + 1)
    assert bench.log.apply_retention(bench.clock.now_ms()) == 1
    with pytest.raises(KafkaError) as caught:
        bench.log.delete_records_before(bench.log.high_watermark + 1)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_compacted_log_only_loses_what_is_below_its_start(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_bytes=1000, retention_ms=0, cleanup_delete=False, cleanup_compact=True)
    bench.fill(30)
    assert bench.log.apply_retention(bench.clock.now_ms() + HOUR_MS) == 0
    bench.log.delete_records_before(bench.log.bases[2] + 1)
    assert bench.log.apply_retention(bench.clock.now_ms()) == 2
    assert bench.log.log_start_offset == bench.log.bases[0] + 1


def test_files_are_renamed_at_once_and_removed_after_the_delay(tmp_path: Path) -> None:
    bench = _bench(tmp_path, file_delete_delay_ms=60_000)
    bench.fill(1)
    bench.log.roll()
    bench.log.delete_records_before(3)
    bench.log.apply_retention(bench.clock.now_ms())
    names = {path.name for path in bench.directory.glob("*.deleted")}
    assert f"{0:020d}.log.deleted" in names and not bench.file(".log").exists()
    bench.clock.advance(59_999)
    assert bench.trash.empty() == 0
    bench.clock.advance(1)
    assert bench.trash.empty() == len(names)
    assert not list(bench.directory.glob("*.deleted"))


# -- truncation


def test_truncation_over_segments(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_bytes=1000)
    bench.fill(40)
    bench.log.leader_epochs.assign(3, 110)
    records = bench.records()
    assert not bench.log.truncate_to(500)
    assert bench.log.truncate_to(33)
    assert bench.records() == records[:33]
    assert bench.log.leader_epochs.latest == 0
    assert bench.log.high_watermark == 33
    bench.fill(3)
    bench.restart(clean=False)
    assert [read.offset for read in bench.records()] == list(range(42))


def test_truncation_restores_producers(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_bytes=500)
    for sequence in range(20):
        bench.append(b"v", producer_id=7, producer_epoch=0, base_sequence=sequence)
    bench.log.truncate_to(11)
    assert bench.append(b"v", producer_id=7, producer_epoch=0, base_sequence=10).duplicate
    assert bench.append(b"v", producer_id=7, producer_epoch=0, base_sequence=11).first_offset == 11


def test_truncating_fully_and_starting_at_another_offset(tmp_path: Path) -> None:
    bench = _bench(tmp_path, segment_bytes=1000)
    bench.fill(20)
    bench.log.truncate_fully_and_start_at(1000)
    assert (bench.log.log_start_offset, bench.log.log_end_offset, bench.log.bases) == (1000, 1000, [1000])
    assert bench.append(b"v").first_offset == 1000
    bench.restart(clean=False)
    assert (bench.log.log_start_offset, bench.log.log_end_offset) == (1000, 1001)


# -- flushing


def test_flush_messages(tmp_path: Path) -> None:
    bench = _bench(tmp_path, flush_messages=4)
    points = []
    for _ in range(9):
        bench.append(b"v")
        points.append(bench.log.recovery_point)
    assert points == [0, 0, 0, 4, 4, 4, 4, 8, 8]


def test_flush_ms_and_rolled_segments_are_due(tmp_path: Path) -> None:
    bench = _bench(tmp_path, flush_ms=1000)
    bench.append(b"v")
    assert bench.log.flush_due(bench.clock.now_ms()) is None
    bench.log.roll()
    assert bench.log.flush_due(bench.clock.now_ms()) == 1
    bench.log.flush(1)
    assert bench.log.recovery_point == 1
    bench.append(b"v")
    bench.clock.advance(1000)
    assert bench.log.flush_due(bench.clock.now_ms()) == 2
    task = bench.log.plan_flush(2)
    task.run()
    assert bench.log.recovery_point == 1
    bench.log.finish_flush(task)
    assert bench.log.recovery_point == 2


# -- files


def test_the_log_file_is_the_batches_and_nothing_else(tmp_path: Path) -> None:
    bench = _bench(tmp_path)
    expected = b""
    for number in range(3):
        data = bench.batch(b"v%d" % number)
        bench.log.append_as_leader(data, 0)
        expected += bytes(data.data)
    bench.close()
    assert bench.file(".log").read_bytes() == expected
    assert sorted(path.name for path in bench.directory.iterdir()) == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.timeindex",
        f"{0:020d}.txnindex",
        f"{3:020d}.snapshot",
        "leader-epoch-checkpoint",
    ]


def test_a_window_reads_again_outside_its_bytes(tmp_path: Path) -> None:
    bench = _bench(tmp_path)
    bench.fill(10)
    window = Window(bench.disk, bench.log.active.file(), bench.log.active.size, window_bytes=64)
    data = bench.file(".log").read_bytes()
    for position in (0, 10, 500, 20, len(data) - 5):
        assert bytes(window.at(position, 100)) == data[position : position + 100]


def test_idle_files_are_closed_and_opened_again(tmp_path: Path) -> None:
    bench = LogBench(tmp_path, TopicConfig(segment_bytes=1000))
    bench.fill(30)
    bench.records()
    for _ in range(2):
        bench.log.release_idle()
    assert bench.log.segments[0]._file is None
    assert len(bench.records()) == 90
