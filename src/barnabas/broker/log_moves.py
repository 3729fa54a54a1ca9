"""Moves of replicas between the log directories of this broker (AlterReplicaLogDirs).

A copy of the log is filled beside it, in portions, while the replica goes on leading or following. When the
copy has everything and is on disk, it takes the place of the log in one turn of the loop. A move that is
interrupted by a failure or another request leaves the replica where it was. One that is interrupted by a
restart begins again: the directory of the copy says so."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode, KafkaError
from barnabas.log.errors import UnexpectedOffsetError
from barnabas.replication.throttling import RateLimit

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.ids import TopicPartition
    from barnabas.log.directories import LogDirectory
    from barnabas.log.log import Log

logger = logging.getLogger(__name__)

PORTION_BYTES = 1 << 20
THROTTLED_SECONDS = 0.1


class LogMoves:
    def __init__(self, broker: Broker) -> None:
        config = broker.config
        self._broker = broker
        self._logs = broker.logs
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._moving = asyncio.Semaphore(
            config["num.replica.alter.log.dirs.threads"] or len(self._logs.directories)
        )
        self.throttle = RateLimit(
            broker.clock,
            config["alter.log.dirs.replication.quota.window.num"],
            config["alter.log.dirs.replication.quota.window.size.seconds"],
        )
        self.reconfigure()

    def reconfigure(self) -> None:
        """Take changed settings of the broker."""
        name = "replica.alter.log.dirs.io.max.bytes.per.second"
        self.throttle.bytes_per_second = self._broker.config[name]

    def start(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Move the replica to the directory; a move of it to another directory is given up."""
        future = self._logs.futures.get(partition)
        if future is not None and future.directory.parent == directory.path:
            return
        self.cancel(partition)
        if self._logs.directory_of(partition) is not directory:
            # Also if others have to be moved first: a restart begins with all that have a directory.
            self._logs.create_future(partition, directory)
            task = asyncio.get_running_loop().create_task(self._move(partition, directory))
            self._tasks[partition] = task

    def resume(self) -> None:
        """Begin the moves again that the last stop of the broker has interrupted."""
        for directory in self._logs.directories:
            partitions, directory.interrupted_moves = directory.interrupted_moves, []
            for partition in partitions:
                if self._logs.get(partition) is not None:
                    try:
                        self.start(partition, directory)
                    except KafkaError as error:
                        logger.error("cannot move %s to %s: %s", partition, directory.path, error)

    def cancel(self, partition: TopicPartition) -> None:
        task = self._tasks.pop(partition, None)
        if task is not None:
            task.cancel()
            self._logs.drop_future(partition)

    async def stop(self) -> None:
        """The copies stay where they are, so that the next start goes on with these moves."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _move(self, partition: TopicPartition, directory: LogDirectory) -> None:
        try:
            async with self._moving:
                future = await self._fill(partition)
                # What is left is little, so that the last sync does not take long.
                task = future.plan_flush()
                self._logs.finish_flush(future, task, await asyncio.to_thread(task.problem))
                while self._copy(self._current(partition), future):
                    pass
                self._replace(partition)
        except (KafkaError, UnexpectedOffsetError, OSError) as error:
            logger.error("cannot move %s to %s: %s", partition, directory.path, error)
            self._logs.drop_future(partition)
        finally:
            if self._tasks.get(partition) is asyncio.current_task():
                del self._tasks[partition]

    async def _fill(self, partition: TopicPartition) -> Log:
        """Copy until nothing is left, as fast as the throttle allows; returns the copy."""
        while True:
            if self.throttle.is_exceeded():
                await asyncio.sleep(THROTTLED_SECONDS)
                continue
            log = self._current(partition)
            future = self._logs.futures[partition]
            copied = self._copy(log, future)
            if not copied:
                return future
            self.throttle.record(copied)
            await asyncio.sleep(0)

    def _current(self, partition: TopicPartition) -> Log:
        log = self._logs.get(partition)
        future = self._logs.futures.get(partition)
        if log is None or log.offline or future is None or future.offline or log.topic_id != future.topic_id:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the log or its copy is gone")
        return log

    @staticmethod
    def _copy(log: Log, future: Log) -> int:
        """Copy the next portion; returns how many bytes it had."""
        if log.log_start_offset > future.log_end_offset:
            future.truncate_fully_and_start_at(log.log_start_offset)
        copied = 0
        if future.log_end_offset < log.log_end_offset:
            piece = log.read(
                future.log_end_offset, PORTION_BYTES, upper_offset=log.log_end_offset, at_least_one=True
            )
            if piece.file is None:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"offset {future.log_end_offset} cannot be read")
            data = os.pread(piece.file.fileno(), piece.size, piece.position)
            piece.release()
            future.append_from_start(memoryview(data))
            copied = len(data)
        future.update_high_watermark(min(log.high_watermark, future.log_end_offset))
        if log.log_start_offset > future.log_start_offset:
            future.delete_records_before(min(log.log_start_offset, future.high_watermark))
        return copied

    def _replace(self, partition: TopicPartition) -> None:
        log = self._logs.replace_by_future(partition)
        held = self._broker.replicas.get(*partition)
        if held is not None:
            held.replace_log(log)
        logger.info("%s is in %s now", partition, log.directory.parent)
