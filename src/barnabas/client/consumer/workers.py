"""One consumer that polls, worker threads that process the records, and commits that are safe.

    def charge(record):
        ...

    with ConsumerWorkers(charge, workers=8, bootstrap_servers="localhost:9092", group_id="g") as workers:
        workers.subscribe(["orders"])
        workers.run()

An offset is committed only when every record before it is done, so a crash skips no record. Records that were
done after an unfinished one are processed again (at least once). Polling continues while the workers are
busy, so slow records do not end the membership. A partition with too many unfinished records is paused, which
limits memory.

When partitions go to another consumer, the workers finish the records up to the last one that was started,
drop the later ones, and the finished ones are committed: nothing is done twice. When a worker raises an
exception, no new record is started, the other workers finish, the finished records are committed, and run()
raises the exception."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, Self, Unpack

from barnabas.client.config import consumer_config
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.core import Topics
from barnabas.client.consumer.lanes import Lanes
from barnabas.client.consumer.membership import RebalanceListener
from barnabas.client.consumer.records import ConsumerRecord
from barnabas.client.errors import ConfigError, KafkaError, WakeupError
from barnabas.client.generic import K, V
from barnabas.client.settings import ConsumerSettings
from barnabas.client.types import OffsetAndMetadata, TopicPartition

_log = logging.getLogger(__name__)
POLL_SECONDS = 0.2
CLOSE_SECONDS = 60.0
# The share of max.poll.interval.ms that a rebalance may wait for records that are being processed.
SHARE_OF_POLL_INTERVAL = 0.5


class ConsumerWorkers(Generic[K, V]):
    """`workers` threads call `handle(record)`, in order for each key or for each partition.

    records_max limits the unfinished records; one poll may go beyond it. The other settings are the
    consumer's. Offsets are committed every auto.commit.interval.ms, when partitions are revoked, and at the
    end."""

    def __init__(
        self,
        handle: Callable[[ConsumerRecord[K, V]], object],
        settings: Mapping[str, Any] | None = None,
        *,
        workers: int = 4,
        order: Literal["key", "partition"] = "key",
        records_max: int = 1000,
        **keywords: Unpack[ConsumerSettings[K, V]],
    ) -> None:
        if workers < 1 or records_max < 1 or order not in ("key", "partition"):
            raise ConfigError(
                "workers and records_max must be at least 1, and order must be key or partition."
            )
        self._handle = handle
        self._records_max = records_max
        self._lanes = Lanes(by_key=order == "key")
        given = _without_auto_commit(settings, keywords)
        config = consumer_config(given)
        self._consumer: Consumer[K, V] = Consumer(given)
        self._is_stopping = False
        self._is_closed = False
        self._is_woken = False
        self._has_paused = False
        self._share = records_max
        self._commit_due = 0.0
        self._commit_seconds = config.seconds("auto.commit.interval.ms")
        self._patience_seconds = config.seconds("max.poll.interval.ms") * SHARE_OF_POLL_INTERVAL
        self._threads = [
            threading.Thread(target=self._work, name=f"barnabas-worker-{number}", daemon=True)
            for number in range(workers)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def subscribe(self, topics: Topics) -> None:
        """Read these topics, or those that match the pattern, as a member of the group."""
        self._consumer.subscribe(topics, _RevocationListener(self))

    @property
    def under_way(self) -> int:
        """The number of polled records that are not finished, or that follow one that is not finished."""
        return sum(self._lanes.counts().values())

    # ---- running

    def run(self) -> None:
        """Poll and process until stop() is called or a worker fails; then close, and raise the worker's
        error."""
        for thread in self._threads:
            thread.start()
        try:
            while not (self._is_stopping or self._lanes.failure):
                self._turn()
        finally:
            self.close()
        if self._lanes.failure is not None:
            raise self._lanes.failure

    def stop(self) -> None:
        """Make run() return once the queued records are done and committed. For other threads and signals."""
        self._is_stopping = True
        self._consumer.wakeup()

    def _turn(self) -> None:
        self._is_woken = False
        try:
            self._lanes.put(self._consumer.poll(POLL_SECONDS))
        except WakeupError:
            # stop() was called, or a paused partition may continue: both are checked below.
            _log.debug("the polling of a worker pool was woken")
        self._pause_and_resume()
        if time.monotonic() >= self._commit_due:
            self._commit_due = time.monotonic() + self._commit_seconds
            self._commit_in_background()

    def _pause_and_resume(self) -> None:
        """Pause a partition at its share of records_max, and resume it at half of that."""
        assigned, paused = self._consumer.assignment(), self._consumer.paused()
        self._share = share = max(1, self._records_max // max(1, len(assigned)))
        counts = self._lanes.counts()
        full = [each for each in assigned - paused if counts.get(each, 0) >= share]
        free = [each for each in assigned & paused if counts.get(each, 0) <= share // 2]
        self._consumer.pause(*full)
        self._consumer.resume(*free)
        self._has_paused = bool(self._consumer.paused())

    def _work(self) -> None:
        while (taken := self._lanes.take()) is not None:
            lane, record, progress = taken
            try:
                self._handle(record)
            except BaseException as error:
                self._lanes.failed(lane, progress, error)
                self._consumer.wakeup()
                return
            self._lanes.done(lane, record, progress)
            if self._has_paused and not self._is_woken and len(progress.pending) <= self._share // 2:
                # The partition may be resumed, but the polling thread may be waiting for other records.
                self._is_woken = True
                self._consumer.wakeup()

    # ---- committing

    def _commit_in_background(self) -> None:
        offsets = self._lanes.uncommitted()
        if offsets:
            self._consumer.commit_async(offsets, self._committed)

    def _committed(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: Exception | None
    ) -> None:
        if error is None:
            self._lanes.committed(dict(offsets))
        else:
            _log.warning("cannot commit offsets, will try again with the next commit: %s", error)

    def _commit_now(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        is_open = bool(offsets)
        while is_open:
            try:
                self._consumer.commit_sync(offsets)
                self._lanes.committed(offsets)
                is_open = False
            except WakeupError:
                # The wakeup was for poll(). Commit again: twice does no harm.
                is_open = True
            except KafkaError as error:
                _log.warning("cannot commit offsets; the records will be processed again: %s", error)
                is_open = False

    def revoke(self, partitions: list[TopicPartition]) -> None:
        """Called when partitions go to another consumer, while their offsets can still be committed."""
        self._lanes.drop_unneeded(partitions)
        if not self._lanes.wait_idle(partitions, time.monotonic() + self._patience_seconds):
            _log.warning(
                "partitions are revoked while some of their records are being processed:"
                " these records will be processed again"
            )
        self._commit_now(self._lanes.uncommitted(partitions))
        self._lanes.forget(partitions)

    def lose(self, partitions: list[TopicPartition]) -> None:
        """Called when another consumer has the partitions already."""
        self._lanes.forget(partitions)

    # ---- the end

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Process the queued records (not after a failure), commit, leave the group. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        deadline = time.monotonic() + timeout
        running = [thread for thread in self._threads if thread.is_alive()]
        try:
            if running:
                self._lanes.wait_empty(deadline)
            self._lanes.end()
            for thread in running:
                thread.join(max(0.0, deadline - time.monotonic()))
        finally:
            # Leaving the group revokes the remaining partitions, which commits their offsets.
            self._consumer.close()


class _RevocationListener(RebalanceListener):
    def __init__(self, workers: ConsumerWorkers[Any, Any]) -> None:
        self._workers = workers

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._workers.revoke(partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self._workers.lose(partitions)


def _without_auto_commit(settings: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    given = {**(settings or {}), **{name.replace("_", "."): value for name, value in keywords.items()}}
    if given.get("enable.auto.commit", False) not in (False, "false"):
        raise ConfigError("enable.auto.commit would commit records that are not finished: do not set it.")
    return {**given, "enable.auto.commit": False}
