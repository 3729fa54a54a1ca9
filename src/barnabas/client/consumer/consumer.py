"""The consumer: subscribe or assign, poll, commit, seek. One thread at a time may use it."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, Unpack

from barnabas.client.consumer.buffer_reader import table_of
from barnabas.client.consumer.commits import Offsets
from barnabas.client.consumer.core import RECHECK_SECONDS, Topics
from barnabas.client.consumer.iterating import iterate_records
from barnabas.client.consumer.membership import RebalanceListener
from barnabas.client.consumer.queries import OffsetQueries
from barnabas.client.consumer.records import ConsumerRecord, ConsumerRecords
from barnabas.client.generic import K, V
from barnabas.client.habits import NoKeywords, check_keywords
from barnabas.client.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow


class Consumer(OffsetQueries[K, V]):
    """Reads records. The settings are Kafka's: keyword arguments with underscores, or a dict with dots.

    with Consumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        for record in consumer.poll(1.0):
            print(record.key, record.value)
        consumer.commit_sync()
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what to read

    def subscribe(
        self, topics: Topics = (), listener: RebalanceListener | None = None, **others: Unpack[NoKeywords]
    ) -> None:
        """Read these topics, or all topics whose full name matches the pattern, as a member of the group.

        re.compile(...) is matched here; a SubscriptionPattern by the brokers (group.protocol=consumer).
        An empty list means unsubscribe()."""
        check_keywords("subscribe()", others)
        with self._access:
            topics = list(topics) if isinstance(topics, list | tuple | set | frozenset) else topics
            if topics == []:
                self.unsubscribe()
            else:
                self._subscribe(topics, listener)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without a group."""
        with self._access:
            self._check_assignable()
            self._engine.steps.perform(self._commit_before_revocation())
            self._assign(partitions)

    def unsubscribe(self) -> None:
        """Read nothing and leave the group."""
        with self._access:
            self._engine.steps.perform(self._unsubscribe())

    # ---- reading

    def poll(self, timeout: float = 0.0, **others: Unpack[NoKeywords]) -> ConsumerRecords[K, V]:
        """The next records, at most max.poll.records; waits up to `timeout` seconds for the first."""
        check_keywords("poll()", others)
        with self._access:
            records: ConsumerRecords[K, V] | None = self._poll(self._take_records, timeout)
            return ConsumerRecords() if records is None else records

    def poll_arrow(self, timeout: float = 0.0, records_max: int = 100_000) -> "pyarrow.Table":
        """As poll, as a pyarrow.Table: topic, partition, offset, timestamp, key, value, headers.

        Deserializers and interceptors are not used. Needs pyarrow."""
        with self._access:
            return table_of(self._poll(lambda: self._buffer_reader.columns(records_max), timeout))

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Iterate over records forever; wakeup(), or close() in a listener, ends it. The position moves with
        each record: commit_sync() in the loop commits the records returned so far, and no more."""
        while not self._access.is_closed:
            yield from iterate_records(self._engine.assignments, self.poll(RECHECK_SECONDS))

    def _poll(self, take: Callable[[], Any], timeout: float) -> Any:
        engine = self._engine
        deadline = time.monotonic() + timeout
        while True:
            now = self._begin_turn()
            if engine.membership is not None:
                engine.steps.perform(engine.membership.poll(deadline))
            self._commit_if_due(now)
            engine.assignments.raise_error()
            taken = take()
            if taken is not None or time.monotonic() >= deadline:
                return taken
            engine.wait(self._has_work, min(deadline, time.monotonic() + RECHECK_SECONDS))

    # ---- committing

    def commit_sync(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        """Commit these offsets, or the current positions; returns when they are committed."""
        with self._access:
            self._require_group()
            to_commit = self._engine.consumed() if offsets is None else dict(offsets)
            self._engine.commit(to_commit, self._api_seconds if timeout is None else timeout)
            self._run_callbacks()
            self._run_commit_interceptors(to_commit)

    # ---- the end

    def close(self, timeout: float = 30.0) -> None:
        """Commit if enable.auto.commit is on, leave the group, close the connections. May be called twice."""
        if self._access.is_closed:
            return
        with self._access:
            self._access.is_closed = True
            try:
                self._engine.steps.perform(self._closing_steps(timeout))
            finally:
                self._engine.close()
                self._close_interceptors()
