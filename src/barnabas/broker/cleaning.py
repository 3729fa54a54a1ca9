"""Drives the log cleaner: asks it for jobs, has worker processes do them, and installs the results.

There are up to `log.cleaner.threads` workers. The process of a worker is started with its first job and ends
when there has been no job for a while. Only the choice of a log and a few renames happen on the event loop. A
process that dies loses its job; the broker goes on."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from barnabas.clock import Clock, SystemClock
from barnabas.log.compaction.cleaner import Cleaner, CleanerSettings, Fault
from barnabas.log.compaction.job import CleaningJob, CleaningResult

logger = logging.getLogger(__name__)

RESULT_BYTES_MAX = 64 << 20
IDLE_SECONDS = 60.0


class WorkerDiedError(Exception):
    """The process ended before it gave a result."""


class CleanerWorker:
    """The process, if there is one."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._ending: asyncio.Task[int | None] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def run(self, job: CleaningJob) -> CleaningResult:
        process = self._process or await self._start()
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the cleaner's process has no pipes")
        try:
            process.stdin.write(job.to_json().encode() + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
        except (ConnectionError, ValueError) as problem:
            await self.stop(kill=True)
            raise WorkerDiedError(f"lost the connection to the cleaner's process: {problem}") from problem
        if not line.endswith(b"\n"):
            code = await self.stop(kill=True)
            raise WorkerDiedError(f"the cleaner's process died with exit status {code}")
        return CleaningResult.from_json(line)

    async def _start(self) -> asyncio.subprocess.Process:
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "barnabas.log.compaction.worker",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=RESULT_BYTES_MAX,
            )
        )
        try:
            self._process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # asyncio leaves pipes open if it is cancelled while it starts a process: wait for the start.
            self._process = await starting
            raise
        return self._process

    async def stop(self, *, kill: bool) -> int | None:
        """End the process: kill it, or close its stdin, after which it ends by itself."""
        process = self._process
        if process is None:
            return None
        if kill and process.returncode is None:
            # Not process.kill(): that reaps a process which has just died, and its exit status is lost.
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end(process))
        # The task goes on if the caller is cancelled; the next call of `stop` waits for the same task.
        return await asyncio.shield(self._ending)

    async def _end(self, process: asyncio.subprocess.Process) -> int | None:
        if process.stdin is not None:
            process.stdin.close()
            with suppress(ConnectionError):
                await process.stdin.wait_closed()
        await process.communicate()
        self._process = self._ending = None
        return process.returncode


class CleanerDriver:
    """`workers` are indexed from 0; a worker whose index is not below `worker_count` ends after its job."""

    def __init__(
        self,
        cleaner: Cleaner,
        backoff_seconds: float,
        clock: Clock | None = None,
        idle_seconds: float = IDLE_SECONDS,
        worker_count: int = 1,
    ) -> None:
        self.backoff_seconds = backoff_seconds
        self.worker_count = worker_count
        self.workers: dict[int, CleanerWorker] = {}
        self._cleaner = cleaner
        self._clock = clock or SystemClock()
        self._idle_seconds = idle_seconds
        self._tasks: dict[int, asyncio.Task[None]] = {}
        # Set, and replaced, when settings have changed: it ends the pauses.
        self._changed = asyncio.Event()
        self._saving = asyncio.Lock()
        self._is_stopped = False

    @classmethod
    def of(cls, cleaner: Cleaner, config: Mapping[str, Any], clock: Clock) -> "CleanerDriver":
        """From the broker's typed settings."""
        driver = cls(cleaner, 0.0, clock)
        driver._take(config)
        return driver

    def start(self) -> None:
        for index in range(self.worker_count):
            if index not in self._tasks:
                task = asyncio.get_running_loop().create_task(self._run(index), name=f"log cleaner {index}")
                self._tasks[index] = task
                task.add_done_callback(self._ended)

    def reconfigure(self, config: Mapping[str, Any]) -> None:
        """Take changed settings: the pause and the number of workers now, the limits with the next job."""
        self._take(config)
        self._changed.set()
        self._changed = asyncio.Event()
        if not self._is_stopped:
            self.start()

    def _take(self, config: Mapping[str, Any]) -> None:
        self._cleaner.settings = CleanerSettings.of(config)
        self.backoff_seconds = config["log.cleaner.backoff.ms"] / 1000
        self.worker_count = config["log.cleaner.threads"]

    async def stop(self) -> None:
        """Give up the jobs under way; the processes have ended when this returns."""
        self._is_stopped = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for worker in self.workers.values():
            await worker.stop(kill=True)
        await self._save()

    def _ended(self, task: asyncio.Task[None]) -> None:
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            logger.critical("%s has stopped", task.get_name(), exc_info=problem)
            self._cleaner.stopped(f"{task.get_name()} has stopped: {problem!r}")

    async def _run(self, index: int) -> None:
        worker = self.workers.setdefault(index, CleanerWorker())
        while index < self.worker_count:
            await self._work(index, worker)
            # The number of workers may rise again while this waits.
            await worker.stop(kill=False)
        del self._tasks[index]

    async def _work(self, index: int, worker: CleanerWorker) -> None:
        idle_since = self._clock.monotonic()
        while index < self.worker_count:
            job = self._cleaner.next_job(self._clock.now_ms())
            if job is not None:
                await self._do(worker, job)
                idle_since = self._clock.monotonic()
            await self._save()
            if job is None:
                if self._clock.monotonic() - idle_since >= self._idle_seconds:
                    await worker.stop(kill=False)
                await self._pause()

    async def _pause(self) -> None:
        """Until the backoff is over or the settings have changed."""
        changed = self._changed
        with suppress(TimeoutError):
            async with asyncio.timeout(self.backoff_seconds):
                await changed.wait()

    async def _do(self, worker: CleanerWorker, job: CleaningJob) -> None:
        logger.info("cleaning %s from offset %d", job.partition, job.first_dirty_offset)
        try:
            result = await worker.run(job)
            self._report(job, result, await self._finish(job, result))
        except WorkerDiedError as problem:
            self._cleaner.fail(job, str(problem), Fault.WORKER)
        except OSError as problem:
            self._cleaner.fail(job, f"the cleaner's process cannot be started: {problem}", Fault.DISK)
        except asyncio.CancelledError:
            await worker.stop(kill=True)
            self._cleaner.abandon(job)
            raise

    async def _finish(self, job: CleaningJob, result: CleaningResult) -> bool:
        """Install the new segments one by one; the loop serves others in between."""
        steps = self._cleaner.finish_steps(job, result)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return bool(end.value)
            await asyncio.sleep(0)

    def _report(self, job: CleaningJob, result: CleaningResult, installed: bool) -> None:
        logger.info(
            "%s %s: %d bytes read, %d written, clean to offset %d, %.1f s",
            "cleaned" if installed else "did not clean",
            job.partition,
            result.bytes_read,
            result.bytes_written,
            result.end_offset,
            result.seconds,
        )

    async def _save(self) -> None:
        # Two workers must not write the same file at the same time.
        async with self._saving:
            task = self._cleaner.checkpoint_task()
            if task is None:
                return
            try:
                await asyncio.to_thread(task.run)
            except OSError as problem:
                # The old checkpoint stays: after a restart a part of the log is cleaned once more.
                logger.error("cannot write the cleaner's checkpoint: %s", problem)
