"""Which log the cleaner chooses, what it remembers, and what it does when a job fails."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.compaction import COMPACTED, CompactionBench

from barnabas.clock import FakeClock
from barnabas.config.topic import TopicConfig
from barnabas.config.values import BrokerConfig
from barnabas.ids import TopicPartition
from barnabas.log.compaction.cleaner import DEATHS_MAX, Cleaner, CleanerSettings, Fault
from barnabas.log.compaction.job import CleaningJob, CleaningResult
from barnabas.log.compaction.rewriting import clean
from barnabas.log.disk import RealDisk
from barnabas.log.log import Log
from barnabas.log.manager import LogManager, LogSettings
from barnabas.records.builder import build_batch
from barnabas.records.validation import BatchRules, validate

HOUR_MS = 3_600_000


class Shop:
    """Several compacted logs of one manager, and their cleaner."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.disk = RealDisk()
        self.clock = FakeClock()
        self.manager = LogManager([root], LogSettings("cluster", 1), self.disk, self.clock)
        self.manager.load(lambda _: COMPACTED)
        self.cleaner = self.new_cleaner()

    def new_cleaner(self) -> Cleaner:
        return Cleaner(self.manager.logs, self.disk, CleanerSettings())

    def log(self, topic: str, config: TopicConfig = COMPACTED) -> Log:
        return self.manager.get_or_create(TopicPartition(topic, 0), None, config)

    def put(self, log: Log, *keys: bytes, roll: bool = True) -> None:
        for key in keys:
            now_ms = self.clock.now_ms()
            data = memoryview(build_batch([(now_ms, key, b"x" * 50, [])]))
            log.append_as_leader(validate(data, BatchRules.of(log.config), now_ms), 0)
        log.update_high_watermark(log.log_end_offset)
        if roll:
            log.roll()

    def job(self) -> CleaningJob | None:
        return self.cleaner.next_job(self.clock.now_ms())

    def clean_next(self) -> str | None:
        job = self.job()
        if job is None:
            return None
        assert self.cleaner.finish(job, clean(job, self.disk))
        task = self.cleaner.checkpoint_task()
        assert task is not None
        task.run()
        return job.partition.topic

    def checkpoint(self) -> str:
        return (self.root / "cleaner-offset-checkpoint").read_text()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    yield shop
    shop.manager.shutdown()


# -- choosing


def test_the_dirtiest_log_comes_first(shop: Shop) -> None:
    half, whole = shop.log("half"), shop.log("whole")
    shop.put(half, b"a", b"b")
    assert shop.clean_next() == "half"
    shop.put(half, b"a")
    shop.put(whole, b"a")
    assert [shop.clean_next() for _ in range(3)] == ["whole", "half", None]


def test_a_log_below_the_dirty_ratio_waits(shop: Shop) -> None:
    log = shop.log("t", replace(COMPACTED, min_cleanable_dirty_ratio=0.5))
    shop.put(log, b"a", b"b", b"c", b"d")
    assert shop.clean_next() == "t"
    shop.put(log, b"e")
    assert shop.job() is None
    assert shop.cleaner.health().max_dirty_ratio == pytest.approx(1 / 5)
    shop.put(log, b"f", b"g", b"h", b"i")
    assert shop.clean_next() == "t"


def test_max_compaction_lag_overrides_the_dirty_ratio(shop: Shop) -> None:
    log = shop.log("t", replace(COMPACTED, min_cleanable_dirty_ratio=0.9, max_compaction_lag_ms=HOUR_MS))
    shop.put(log, *[b"%d" % number for number in range(9)])
    assert shop.clean_next() == "t"
    shop.put(log, b"new")
    shop.clock.advance(HOUR_MS)
    assert shop.job() is None
    shop.clock.advance(1)
    assert shop.clean_next() == "t"
    assert shop.job() is None, "nothing is dirty any more"


def test_min_compaction_lag_holds_young_segments_back(shop: Shop) -> None:
    log = shop.log("t", replace(COMPACTED, min_compaction_lag_ms=HOUR_MS))
    shop.put(log, b"a", b"a")
    shop.clock.advance(HOUR_MS // 2)
    shop.put(log, b"a", b"a")
    assert shop.job() is None
    shop.clock.advance(HOUR_MS // 2)
    job = shop.job()
    assert job is not None and job.upper_offset == 2


def test_nothing_at_or_above_the_high_watermark_is_cleaned(shop: Shop) -> None:
    log = shop.log("t")
    shop.put(log, b"a")
    shop.put(log, b"a")
    log.high_watermark = 1
    job = shop.job()
    assert job is not None and job.upper_offset == 1


def test_logs_that_are_not_compacted_are_left_alone(shop: Shop) -> None:
    shop.put(shop.log("t", replace(COMPACTED, cleanup_compact=False)), b"a", b"a")
    assert shop.job() is None


def test_one_job_at_a_time_for_each_log(shop: Shop) -> None:
    shop.put(shop.log("one"), b"a")
    shop.put(shop.log("two"), b"a")
    first, second = shop.job(), shop.job()
    assert first is not None and second is not None
    assert {first.partition.topic, second.partition.topic} == {"one", "two"}
    assert shop.job() is None
    assert shop.cleaner.health().current == (first.partition, second.partition)
    shop.cleaner.abandon(first)
    again = shop.job()
    assert again is not None and again.partition == first.partition


def test_compact_and_delete_also_deletes(shop: Shop) -> None:
    log = shop.log("t", replace(COMPACTED, cleanup_delete=True, retention_ms=HOUR_MS))
    shop.put(log, b"a", b"b")
    shop.clean_next()
    shop.clock.advance(HOUR_MS + 1)
    shop.put(log, b"c")
    assert shop.manager.apply_retention() == 1
    assert log.log_start_offset == 2
    assert shop.clean_next() == "t"


# -- remembering


def test_the_checkpoint_has_kafkas_format(shop: Shop) -> None:
    shop.put(shop.log("t"), b"a", b"b")
    shop.clean_next()
    assert shop.checkpoint() == "0\n1\nt 0 2\n"


def test_a_new_cleaner_goes_on_from_the_checkpoint(shop: Shop) -> None:
    log = shop.log("t")
    shop.put(log, b"a", b"b")
    shop.clean_next()
    shop.put(log, b"c")
    shop.cleaner = shop.new_cleaner()
    job = shop.job()
    assert job is not None and job.first_dirty_offset == 2


def test_a_checkpoint_beyond_the_log_is_not_used(shop: Shop) -> None:
    (shop.root / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 99\n")
    shop.put(shop.log("t"), b"a")
    job = shop.job()
    assert job is not None and job.first_dirty_offset == 0


def test_a_checkpoint_below_the_log_start_is_moved_up(shop: Shop) -> None:
    log = shop.log("t")
    shop.put(log, b"a", b"b", b"c")
    log.delete_records_before(2)
    job = shop.job()
    assert job is not None and job.first_dirty_offset == 2


def test_a_topic_created_again_is_dirty(shop: Shop) -> None:
    log = shop.log("t")
    shop.put(log, b"a", b"b")
    shop.clean_next()
    shop.manager.delete(log.partition)
    shop.put(shop.log("t"), b"a", b"b", b"c")
    job = shop.job()
    assert job is not None and job.first_dirty_offset == 0
    task = shop.cleaner.checkpoint_task()
    assert task is not None
    task.run()
    assert shop.checkpoint() == "0\n0\n"


def test_a_truncated_log_is_dirty_from_there(shop: Shop) -> None:
    log = shop.log("t")
    shop.put(log, b"a", b"b", b"c")
    shop.clean_next()
    shop.cleaner.truncated(log.partition, 1)
    job = shop.job()
    assert job is not None and job.first_dirty_offset == 1


# -- results of jobs


def test_health_counts_runs_and_bytes(shop: Shop) -> None:
    log = shop.log("t")
    shop.put(log, b"a", b"a", b"a")
    size = log.size
    shop.clean_next()
    health = shop.cleaner.health()
    assert (health.runs, health.failures, health.last_error, health.current) == (1, 0, None, ())
    assert health.bytes_read == 2 * size
    assert health.bytes_written == size // 3


def test_data_that_cannot_be_cleaned_makes_only_its_partition_uncleanable(shop: Shop) -> None:
    bad, good = shop.log("bad"), shop.log("good")
    shop.put(good, b"a")
    shop.put(bad, b"a", b"b")
    jobs = [shop.job()]
    assert jobs[0] is not None
    shop.cleaner.fail(jobs[0], "the batch at offset 0 is not what was written", Fault.DATA)
    other = {"good": "bad", "bad": "good"}[jobs[0].partition.topic]
    assert shop.clean_next() == other
    shop.clock.advance(10 * HOUR_MS)
    assert shop.job() is None
    health = shop.cleaner.health()
    assert dict(health.uncleanable) == {jobs[0].partition: "the batch at offset 0 is not what was written"}
    assert health.last_error == f"{jobs[0].partition}: the batch at offset 0 is not what was written"
    shop.manager.delete(jobs[0].partition)
    shop.job()
    assert not shop.cleaner.health().uncleanable


def test_an_error_in_the_result_fails_the_job(shop: Shop) -> None:
    shop.put(shop.log("t"), b"a")
    job = shop.job()
    assert job is not None
    assert not shop.cleaner.finish(job, CleaningResult(error="DamagedSourceError: x", data_fault=True))
    assert job.partition in shop.cleaner.health().uncleanable


def test_a_failing_disk_is_tried_again_later(shop: Shop) -> None:
    shop.put(shop.log("t"), b"a")
    job = shop.job()
    assert job is not None
    shop.cleaner.finish(job, CleaningResult(error="OSError: no space left"))
    assert shop.job() is None
    assert "no space left" in (shop.cleaner.health().last_error or "")
    assert not shop.cleaner.health().uncleanable
    shop.clock.advance(shop.cleaner.settings.retry_ms)
    assert shop.clean_next() == "t"
    assert shop.cleaner.health().last_error is None


def test_a_partition_that_kills_its_process_repeatedly_becomes_uncleanable(shop: Shop) -> None:
    shop.put(shop.log("t"), b"a")
    for _ in range(DEATHS_MAX):
        assert not shop.cleaner.health().uncleanable
        shop.clock.advance(HOUR_MS)
        job = shop.job()
        assert job is not None
        shop.cleaner.fail(job, "killed", Fault.WORKER)
    shop.clock.advance(HOUR_MS)
    assert shop.job() is None
    assert dict(shop.cleaner.health().uncleanable) == {job.partition: "killed"}


def test_a_topic_deleted_meanwhile_is_not_a_failure(shop: Shop) -> None:
    log = shop.log("t")
    shop.put(log, b"a")
    job = shop.job()
    assert job is not None
    shop.manager.delete(log.partition)
    shop.cleaner.fail(job, "FileNotFoundError", Fault.DISK)
    assert (shop.cleaner.health().failures, shop.cleaner.health().last_error) == (0, None)


@pytest.mark.parametrize("change", ["retention", "truncation", "damage", "closing"])
def test_a_log_that_changed_meanwhile_keeps_its_own_segments(shop: Shop, change: str) -> None:
    log = shop.log("t")
    shop.put(log, b"a", b"a")
    shop.put(log, b"a", b"a")
    shop.put(log, b"a", roll=False)
    job = shop.job()
    assert job is not None
    result = clean(job, shop.disk)
    assert result.groups
    if change == "retention":
        log.delete_records_before(2)
        log.apply_retention(shop.clock.now_ms())
    elif change == "truncation":
        log.truncate_to(3)
    elif change == "damage":
        log.segments[0].bad.append((0, 0, 1, 0, 1))  # type: ignore[arg-type]
    else:
        log.close()
    kept = [(segment.base_offset, segment.size) for segment in log.segments]
    assert not shop.cleaner.finish(job, result)
    assert [(segment.base_offset, segment.size) for segment in log.segments] == kept
    assert not list(log.directory.glob("*.cleaned"))
    assert shop.cleaner.checkpoint_task() is None
    assert shop.cleaner.health().current == ()


def test_a_cleaned_segment_never_replaces_a_segment_of_another_log(shop: Shop) -> None:
    log = shop.log("t", replace(COMPACTED, segment_bytes=200))
    for _ in range(4):
        shop.put(log, b"a")
    job = shop.job()
    assert job is not None
    result = clean(job, shop.disk)
    assert [group.bases for group in result.groups] == [(0,), (1,), (2,)]
    log.delete_records_before(1)
    assert log.apply_retention(shop.clock.now_ms()) == 1
    assert not shop.cleaner.finish(job, result)
    assert log.bases == [1, 2, 3, 4]
    assert [segment.size for segment in log.segments] == [segment.size for segment in job.segments[1:]]


def test_an_incomplete_segment_is_not_installed(shop: Shop) -> None:
    log = shop.log("t")
    shop.put(log, b"a", b"a")
    job = shop.job()
    assert job is not None
    result = clean(job, shop.disk)
    cleaned = log.directory / f"{0:020d}.log.cleaned"
    cleaned.write_bytes(cleaned.read_bytes()[:-1])
    assert not shop.cleaner.finish(job, result)
    assert "bytes instead of" in (shop.cleaner.health().last_error or "")
    assert log.segments[0].size == job.segments[0].size


def test_segments_are_installed_one_by_one(tmp_path: Path) -> None:
    bench = CompactionBench(tmp_path, replace(COMPACTED, segment_bytes=200))
    for number in range(12):
        bench.put((b"a", b"%d" % number * 30))
    bench.log.roll()
    job = bench.job()
    assert job is not None
    result = clean(job, bench.disk)
    steps = bench.cleaner.finish_steps(job, result)
    for _ in result.groups:
        next(steps)
        assert bench.latest()[b"a"][0] == 11
        bench.put((b"b", b"meanwhile"))
    assert len(result.groups) > 3
    assert next(steps, None) is None
    assert bench.cleaner.health().runs == 1


def test_settings_come_from_the_broker() -> None:
    config = BrokerConfig(
        {
            "log.cleaner.dedupe.buffer.size": "9000000",
            "log.cleaner.threads": "2",
            "log.cleaner.io.max.bytes.per.second": "1e6",
            "log.cleaner.backoff.ms": "77",
        }
    )
    assert CleanerSettings.of(config) == CleanerSettings(4_500_000, 0.9, 0.5e6, 77)
