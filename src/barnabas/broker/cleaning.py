"""Drives the log cleaner: asks it for jobs, has a process of its own do them, and hands back the results.

The process is started with the first job and ends when there has been none for a while. Only the choice of a
log and a few renames happen on the event loop. A process that dies costs its job, never the broker."""

import asyncio
import logging
import os
import signal
import sys
from contextlib import suppress

from barnabas.clock import Clock, SystemClock
from barnabas.log.compaction.cleaner import Cleaner, Fault
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
            raise WorkerDiedError(f"the cleaner's process cannot be talked to: {problem}") from problem
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
            # asyncio leaves pipes open where it is cancelled between them; so the process is had first.
            self._process = await starting
            raise
        return self._process

    async def stop(self, *, kill: bool) -> int | None:
        """End the process; without `kill` by closing its stdin, upon which it ends by itself."""
        process = self._process
        if process is None:
            return None
        if kill and process.returncode is None:
            # Not process.kill(): that reaps a process which has just died, and its exit status is lost.
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end(process))
        # It goes on when the caller is cancelled, and the next one who wants an end waits for it.
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
    def __init__(
        self,
        cleaner: Cleaner,
        backoff_seconds: float,
        clock: Clock | None = None,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.backoff_seconds = backoff_seconds
        self.worker = CleanerWorker()
        self._cleaner = cleaner
        self._clock = clock or SystemClock()
        self._idle_seconds = idle_seconds
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="log cleaner")
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Give up what is under way; the process is gone afterwards."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self.worker.stop(kill=True)
        await self._save()

    def _ended(self, task: asyncio.Task[None]) -> None:
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            logger.critical("the log cleaner has stopped", exc_info=problem)
            self._cleaner.stopped(f"the log cleaner has stopped: {problem!r}")

    async def _run(self) -> None:
        idle_since = self._clock.monotonic()
        while True:
            job = self._cleaner.next_job(self._clock.now_ms())
            if job is not None:
                await self._do(job)
                idle_since = self._clock.monotonic()
            await self._save()
            if job is None:
                if self._clock.monotonic() - idle_since >= self._idle_seconds:
                    await self.worker.stop(kill=False)
                await asyncio.sleep(self.backoff_seconds)

    async def _do(self, job: CleaningJob) -> None:
        logger.info("cleaning %s from offset %d", job.partition, job.first_dirty_offset)
        try:
            result = await self.worker.run(job)
            self._report(job, result, await self._finish(job, result))
        except WorkerDiedError as problem:
            self._cleaner.fail(job, str(problem), Fault.WORKER)
        except OSError as problem:
            self._cleaner.fail(job, f"the cleaner's process cannot be started: {problem}", Fault.DISK)
        except asyncio.CancelledError:
            await self.worker.stop(kill=True)
            self._cleaner.abandon(job)
            raise

    async def _finish(self, job: CleaningJob, result: CleaningResult) -> bool:
        """Put the segments in place one by one, with room for others in between."""
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
        task = self._cleaner.checkpoint_task()
        if task is None:
            return
        try:
            await asyncio.to_thread(task.run)
        except OSError as problem:
            # The old checkpoint stands: after a restart some of the log is cleaned once more.
            logger.error("how far the logs are clean could not be written down: %s", problem)
