"""One consumer that polls, and worker threads that do the work: with commits that are right.

    def charge(record):
        ...

    with ConsumerWorkers(charge, workers=8, bootstrap_servers="localhost:9092", group_id="g") as workers:
        workers.subscribe(["orders"])
        workers.run()

An offset is committed only when every record before it is done, so after a crash nothing is skipped; what was
done behind a record that was not is done again (at least once). Since the polling goes on while workers work,
slow records do not cost the membership; a partition with too much under way is paused, which bounds memory.

When partitions go to another consumer, records of them behind all that was begun are dropped, the others are
finished, and what is done is committed: nothing is done twice. When a worker raises, no new record is begun,
the others finish, what is done is committed, and run() raises the same exception."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from barnabas.client.config import consumer_config
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.core import Topics
from barnabas.client.consumer.lanes import Lanes
from barnabas.client.consumer.membership import RebalanceListener
from barnabas.client.consumer.records import ConsumerRecord
from barnabas.client.errors import ConfigError, KafkaError, WakeupError
from barnabas.client.types import OffsetAndMetadata, TopicPartition

_log = logging.getLogger(__name__)
POLL_SECONDS = 0.2
CLOSE_SECONDS = 60.0
# Of max.poll.interval.ms, what a rebalance may spend on waiting for records that are being worked on.
SHARE_OF_POLL_INTERVAL = 0.5


class ConsumerWorkers:
    """`handle(record)` is called by `workers` threads, in the order of each key, or of each partition.

    records_max bounds the records under way, give or take one poll. The other settings are the consumer's;
    offsets are committed every auto.commit.interval.ms, when partitions are given up, and at the end."""

    def __init__(
        self,
        handle: Callable[[ConsumerRecord], object],
        settings: Mapping[str, Any] | None = None,
        *,
        workers: int = 4,
        order: Literal["key", "partition"] = "key",
        records_max: int = 1000,
        **keywords: Any,
    ) -> None:
        if workers < 1 or records_max < 1 or order not in ("key", "partition"):
            raise ConfigError("workers and records_max are at least 1, and order is key or partition.")
        self._handle = handle
        self._records_max = records_max
        self._lanes = Lanes(by_key=order == "key")
        given = _without_auto_commit(settings, keywords)
        config = consumer_config(given)
        self._consumer = Consumer(given)
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
        self._consumer.subscribe(topics, _Handover(self))

    @property
    def under_way(self) -> int:
        """Records that were polled and are not done, or done behind one that is not."""
        return sum(self._lanes.counts().values())

    # ---- running

    def run(self) -> None:
        """Poll and work until stop() is called or a worker raises; then close, and raise what it raised."""
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
        """Have run() end, once what is queued is done and committed. For other threads and signals."""
        self._is_stopping = True
        self._consumer.wakeup()

    def _turn(self) -> None:
        self._is_woken = False
        try:
            self._lanes.put(self._consumer.poll(POLL_SECONDS))
        except WakeupError:
            # stop(), or a worker that has made room: both are looked at now.
            _log.debug("the polling of a worker pool was woken")
        self._pause_and_resume()
        if time.monotonic() >= self._commit_due:
            self._commit_due = time.monotonic() + self._commit_seconds
            self._commit_in_background()

    def _pause_and_resume(self) -> None:
        """No partition takes more than its share of records_max; it goes on when half of that is done."""
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
                # The partition may go on, and the polling thread may be waiting for others.
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
            _log.warning("offsets were not committed, and will be next time: %s", error)

    def _commit_now(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        is_open = bool(offsets)
        while is_open:
            try:
                self._consumer.commit_sync(offsets)
                self._lanes.committed(offsets)
                is_open = False
            except WakeupError:
                # Meant for the poll around this; to commit twice does no harm.
                is_open = True
            except KafkaError as error:
                _log.warning("offsets were not committed; their records will come again: %s", error)
                is_open = False

    def give_up(self, partitions: list[TopicPartition]) -> None:
        """Called when partitions go to somebody else, while commits of them are still possible."""
        self._lanes.drop_unneeded(partitions)
        if not self._lanes.wait_idle(partitions, time.monotonic() + self._patience_seconds):
            _log.warning(
                "records are still being worked on whose partitions are given up: they will come again"
            )
        self._commit_now(self._lanes.uncommitted(partitions))
        self._lanes.forget(partitions)

    def lose(self, partitions: list[TopicPartition]) -> None:
        """Called when partitions are somebody else's already."""
        self._lanes.forget(partitions)

    # ---- the end

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Work off what is queued (not after a failure), commit, leave the group. Twice does no harm."""
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
            # Leaving the group gives up what is left, and commits it.
            self._consumer.close()


class _Handover(RebalanceListener):
    def __init__(self, workers: ConsumerWorkers) -> None:
        self._workers = workers

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._workers.give_up(partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self._workers.lose(partitions)


def _without_auto_commit(settings: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    given = {**(settings or {}), **{name.replace("_", "."): value for name, value in keywords.items()}}
    if given.get("enable.auto.commit", False) not in (False, "false"):
        raise ConfigError(
            "enable.auto.commit would commit records that no worker is done with: leave it out."
        )
    return {**given, "enable.auto.commit": False}
