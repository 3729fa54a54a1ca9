"""The periodic work of a broker: retention, flushes, rolling, checkpoints, removal of deleted files and of
expired delegation tokens, and the search for followers that are too slow.

A job runs on the loop in short steps, and requests are answered between the steps, however many logs there
are; only fsync and the removal of files run in a thread. A job that fails is logged and runs again at its
next time: the log layer has already taken a broken directory offline."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

from barnabas.errors import KafkaError
from barnabas.log.checkpoint_task import CheckpointTask
from barnabas.log.log import Log

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger(__name__)

TRASH_SECONDS = 1.0
# How often rolled segments are flushed, and logs whose flush.ms has passed.
FLUSH_SECONDS = 1.0
ROLL_SECONDS = 5.0
# How often damaged ranges of logs are asked for from other replicas.
HEAL_SECONDS = 5.0
# How often replicas in failed directories ask to leave the ISR, until they have left.
OFFLINE_SECONDS = 0.5
IN_SYNC_CHECK_SECONDS_MIN = 0.05
# This many logs take about a millisecond.
LOGS_IN_A_STEP = 200


class Housekeeping:
    def __init__(self, broker: Broker) -> None:
        self._logs = broker.logs
        self._replicas = broker.replicas
        self._healer = broker.healer
        self._tokens = broker.tokens
        self._clock = broker.clock
        self._config = broker.config
        self._tasks: list[asyncio.Task[None]] = []
        self._removing: asyncio.Future[None] | None = None
        # Two jobs must not write the same file at the same time.
        self._checkpointing = asyncio.Lock()

    def start(self) -> None:
        checkpoint_ms = min(
            self._config["log.flush.offset.checkpoint.interval.ms"],
            self._config["log.flush.start.offset.checkpoint.interval.ms"],
        )
        self._every(self._config["log.retention.check.interval.ms"] / 1000, self._retain)
        self._every(checkpoint_ms / 1000, self._checkpoint)
        high_watermarks_ms = self._config["replica.high.watermark.checkpoint.interval.ms"]
        self._every(high_watermarks_ms / 1000, self._checkpoint_high_watermarks)
        self._every(FLUSH_SECONDS, self._flush)
        self._every(ROLL_SECONDS, self._roll)
        self._every(TRASH_SECONDS, self._empty_trash)
        self._every(HEAL_SECONDS, self._heal)
        self._every(OFFLINE_SECONDS, self._leave_offline)
        lag_seconds_max = self._config["replica.lag.time.max.ms"] / 1000
        self._every(max(lag_seconds_max / 2, IN_SYNC_CHECK_SECONDS_MIN), self._check_in_sync)
        token_check_ms = self._config["delegation.token.expiry.check.interval.ms"]
        self._every(token_check_ms / 1000, self._tokens.remove_expired)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._removing is not None:
            # The next owner of the directories must not find files being removed there.
            await asyncio.wait([self._removing])

    def _every(self, seconds: float, job: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(self._repeat(seconds, job)))

    async def _repeat(self, seconds: float, job: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await job()
            except Exception:
                logger.exception("a periodic job failed; next try in %g s", seconds)

    async def _healthy_logs(self) -> AsyncIterator[Log]:
        """Every log that is not offline; the loop serves others after each step."""
        for number, log in enumerate(list(self._logs.logs()), 1):
            if number % LOGS_IN_A_STEP == 0:
                await asyncio.sleep(0)
            if not log.offline:
                yield log

    async def _retain(self) -> None:
        async for log in self._healthy_logs():
            self._logs.retain(log)

    async def _checkpoint(self) -> None:
        async with self._checkpointing:
            await self._write(self._logs.plan_checkpoint())

    async def _checkpoint_high_watermarks(self) -> None:
        async with self._checkpointing:
            task = self._logs.plan_high_watermarks()
            if task is not None:
                await self._write(task)

    async def _write(self, task: CheckpointTask) -> None:
        await asyncio.to_thread(task.write)
        self._logs.install_checkpoint(task)

    async def _flush(self) -> None:
        async for log in self._healthy_logs():
            task = self._logs.flush_task(log)
            if task is not None:
                self._logs.finish_flush(log, task, await asyncio.to_thread(task.problem))

    async def _roll(self) -> None:
        async for log in self._healthy_logs():
            try:
                log.maybe_roll(self._clock.now_ms())
            except KafkaError as problem:
                logger.error("cannot roll %s: %s", log, problem)

    async def _check_in_sync(self) -> None:
        for number, partition in enumerate(list(self._replicas.all()), 1):
            if number % LOGS_IN_A_STEP == 0:
                await asyncio.sleep(0)
            partition.check_in_sync()

    async def _heal(self) -> None:
        await self._healer.heal_all(self._replicas.all())

    async def _leave_offline(self) -> None:
        if self._logs.offline_dirs:
            self._replicas.leave_offline()

    async def _empty_trash(self) -> None:
        removal = self._logs.removal()
        if removal is not None:
            self._removing = asyncio.get_running_loop().run_in_executor(None, removal)
            await asyncio.shield(self._removing)
