"""The worker process of the cleaner: it does its jobs, it may be killed, and it ends when the broker does."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.compaction import COMPACTED, CompactionBench

from barnabas.broker.cleaning import CleanerDriver, CleanerWorker, WorkerDiedError
from barnabas.clock import FakeClock
from barnabas.config.values import BrokerConfig
from barnabas.ids import TopicPartition
from barnabas.log.compaction.cleaner import Cleaner, CleanerSettings
from barnabas.log.compaction.job import CleaningJob
from barnabas.log.disk import RealDisk
from barnabas.log.manager import LogManager, LogSettings
from barnabas.records.builder import build_batch
from barnabas.records.validation import BatchRules, validate

SLOW = 8000.0  # bytes per second: a job of a few segments takes a while


@pytest.fixture
def bench(tmp_path: Path) -> CompactionBench:
    bench = CompactionBench(tmp_path)
    for number in range(60):
        bench.put((b"key-%d" % (number % 7), b"%d" % number * 20))
    bench.log.roll()
    return bench


def slow_job(bench: CompactionBench) -> CleaningJob:
    bench.cleaner.settings = replace(bench.cleaner.settings, bytes_per_second=SLOW)
    job = bench.job()
    assert job is not None
    return job


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the condition did not become true in time")


def run(story: Awaitable[None]) -> None:
    async def main() -> None:
        await story

    asyncio.run(main())


def test_a_job_is_done_in_the_other_process(bench: CompactionBench) -> None:
    async def story() -> None:
        worker = CleanerWorker()
        latest, size = bench.latest(), bench.log.size
        for _ in range(2):
            job = bench.job()
            assert job is not None
            assert bench.cleaner.finish(job, await worker.run(job))
            assert worker.pid not in (None, os.getpid())
            assert bench.latest() == latest
            bench.put((b"key-6", bench.latest()[b"key-6"][1]))
            latest = bench.latest()
            bench.log.roll()
        assert bench.log.size < size / 3
        assert await worker.stop(kill=False) == 0

    run(story())


def test_a_killed_process_costs_its_job_only(bench: CompactionBench) -> None:
    async def story() -> None:
        worker = CleanerWorker()
        latest = bench.latest()
        job = slow_job(bench)
        task = asyncio.create_task(worker.run(job))
        await until(lambda: any(bench.directory.glob("*.cleaned")))
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError, match="-9"):
            await task
        assert worker.pid is None
        assert bench.latest() == latest
        result = await worker.run(replace(job, bytes_per_second=float("inf")))
        assert bench.cleaner.finish(job, result)
        assert bench.latest() == latest
        await worker.stop(kill=True)

    run(story())


def test_the_process_ends_when_the_broker_does(bench: CompactionBench) -> None:
    """The process only sees that its stdin is closed; it must end without finishing its job."""
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas.log.compaction.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(slow_job(bench).to_json().encode() + b"\n")
        process.stdin.close()
        assert process.wait(timeout=30) == 0
        assert process.stdout.read() == b""


class Story:
    """Two compacted topics of one manager, driven by a real process."""

    def __init__(self, root: Path, **settings: float) -> None:
        self.clock = FakeClock()
        self.disk = RealDisk()
        self.manager = LogManager([root], LogSettings("cluster", 1), self.disk, self.clock)
        self.manager.load(lambda _: COMPACTED)
        self.cleaner = Cleaner(
            self.manager.logs,
            self.disk,
            CleanerSettings(retry_ms=0, **settings),  # type: ignore[arg-type]
        )
        self.driver = CleanerDriver(self.cleaner, 0.01, self.clock, idle_seconds=0.0)

    def fill(self, topic: str, batches: int = 40) -> Path:
        log = self.manager.get_or_create(TopicPartition(topic, 0), None, COMPACTED)
        for number in range(batches):
            now_ms = self.clock.now_ms()
            data = memoryview(build_batch([(now_ms, b"key-%d" % (number % 3), b"%d" % number * 20, [])]))
            log.append_as_leader(validate(data, BatchRules.of(COMPACTED), now_ms), 0)
        log.update_high_watermark(log.log_end_offset)
        log.roll()
        return log.directory


def test_the_driver_cleans_what_is_due_and_ends_the_idle_process(tmp_path: Path) -> None:
    async def story() -> None:
        shop = Story(tmp_path)
        shop.fill("one")
        shop.fill("two")
        shop.driver.start()
        await until(lambda: shop.cleaner.health().runs == 2)
        await until(lambda: shop.driver.workers[0].pid is None)
        await shop.driver.stop()
        assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n2\none 0 40\ntwo 0 40\n"
        assert shop.cleaner.health().last_error is None
        shop.manager.shutdown()

    run(story())


def test_a_partition_that_cannot_be_cleaned_does_not_stop_the_others(tmp_path: Path) -> None:
    async def story() -> None:
        shop = Story(tmp_path)
        damaged = shop.fill("bad") / f"{0:020d}.log"
        data = bytearray(damaged.read_bytes())
        data[80] ^= 1
        damaged.write_bytes(data)
        shop.fill("good")
        shop.driver.start()
        await until(lambda: shop.cleaner.health().runs == 1 and shop.cleaner.health().failures == 1)
        await shop.driver.stop()
        health = shop.cleaner.health()
        assert list(health.uncleanable) == [TopicPartition("bad", 0)]
        assert "offset 0 is malformed" in (health.last_error or "")
        assert damaged.read_bytes() == bytes(data)
        shop.manager.shutdown()

    run(story())


def test_the_driver_goes_on_after_its_process_was_killed(tmp_path: Path) -> None:
    async def story() -> None:
        shop = Story(tmp_path, bytes_per_second=SLOW)
        directory = shop.fill("t")
        shop.driver.start()
        await until(lambda: any(directory.glob("*.cleaned")))
        worker = shop.driver.workers[0]
        assert worker.pid is not None
        shop.cleaner.settings = CleanerSettings(retry_ms=0)
        os.kill(worker.pid, signal.SIGKILL)
        await until(lambda: shop.cleaner.health().runs == 1)
        assert shop.cleaner.health().failures == 1
        assert not shop.cleaner.health().uncleanable
        await shop.driver.stop()
        assert not list(directory.glob("*.cleaned"))
        shop.manager.shutdown()

    run(story())


def test_a_driver_that_is_stopped_leaves_nothing_behind(tmp_path: Path) -> None:
    async def story() -> None:
        shop = Story(tmp_path, bytes_per_second=SLOW)
        directory = shop.fill("t")
        before = sorted(path.name for path in directory.iterdir())
        shop.driver.start()
        await until(lambda: any(directory.glob("*.cleaned")))
        await shop.driver.stop()
        assert shop.driver.workers[0].pid is None
        assert sorted(path.name for path in directory.iterdir()) == before
        health = shop.cleaner.health()
        assert (health.current, health.failures, health.runs) == ((), 0, 0)
        shop.manager.shutdown()

    run(story())


@pytest.mark.parametrize("turns", range(1, 6))
def test_a_stop_that_was_cancelled_can_be_followed_by_another(bench: CompactionBench, turns: int) -> None:
    async def story() -> None:
        worker = CleanerWorker()
        job = bench.job()
        assert job is not None
        await worker.run(job)
        stopping = asyncio.create_task(worker.stop(kill=False))
        for _ in range(turns):
            await asyncio.sleep(0)
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        await worker.stop(kill=True)
        assert worker.pid is None

    run(story())


def test_the_number_of_workers_and_the_speed_change_while_jobs_run(tmp_path: Path) -> None:
    async def story() -> None:
        shop = Story(tmp_path, bytes_per_second=SLOW)
        directories = [shop.fill("one", 400), shop.fill("two", 400)]
        shop.driver.backoff_seconds = 3600
        shop.driver.start()
        await until(lambda: len(shop.cleaner.health().current) == 1)
        settings = {**BrokerConfig(), "log.cleaner.io.max.bytes.per.second": 2 * SLOW}
        shop.driver.reconfigure({**settings, "log.cleaner.threads": 2})
        assert shop.cleaner.settings.bytes_per_second == SLOW
        await until(lambda: all(any(directory.glob("*.cleaned")) for directory in directories))
        pids = {worker.pid for worker in shop.driver.workers.values()}
        assert len(pids) == 2 and None not in pids
        # The second worker ends after its job, although the first one is paused for another hour.
        shop.driver.reconfigure({**settings, "log.cleaner.threads": 1, "log.cleaner.backoff.ms": 3_600_000})
        os.kill(shop.driver.workers[1].pid or 0, signal.SIGKILL)
        await until(lambda: shop.driver.workers[1].pid is None and len(shop.driver._tasks) == 1)
        # A changed pause applies to a pause that has begun.
        os.kill(shop.driver.workers[0].pid or 0, signal.SIGKILL)
        await until(lambda: not shop.cleaner.health().current)
        shop.cleaner._troubles.clear()
        shop.driver.reconfigure(
            {**BrokerConfig(), "log.cleaner.threads": 1, "log.cleaner.backoff.ms": 3_600_000}
        )
        await until(lambda: shop.cleaner.health().runs == 2)
        await shop.driver.stop()
        shop.manager.shutdown()

    run(story())


def test_an_unexpected_error_of_the_driver_is_in_its_health(tmp_path: Path) -> None:
    async def story() -> None:
        shop = Story(tmp_path)
        shop.cleaner._logs = lambda: 1 / 0  # type: ignore[assignment, return-value]
        shop.driver.start()
        await until(lambda: shop.cleaner.health().last_error is not None)
        assert "ZeroDivisionError" in (shop.cleaner.health().last_error or "")
        await shop.driver.stop()
        shop.manager.shutdown()

    run(story())
