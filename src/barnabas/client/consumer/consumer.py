"""The consumer: subscribe or assign, poll, commit, seek. It belongs to one thread at a time."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from barnabas.client.consumer.commits import Offsets
from barnabas.client.consumer.core import NAP_SECONDS, Topics
from barnabas.client.consumer.iterating import hand_out
from barnabas.client.consumer.membership import RebalanceListener
from barnabas.client.consumer.queries import OffsetQueries
from barnabas.client.consumer.records import ConsumerRecord, ConsumerRecords
from barnabas.client.types import TopicPartition


class Consumer(OffsetQueries):
    """Reads records. Settings are Kafka's, with underscores, or a dict with dots.

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

    def subscribe(self, topics: Topics, listener: RebalanceListener | None = None) -> None:
        """Read these topics, or all whose whole name matches the pattern, as a member of the group.

        re.compile(...) is matched here; a SubscriptionPattern by the brokers (group.protocol=consumer).
        No topics at all is unsubscribe()."""
        with self._access:
            topics = list(topics) if isinstance(topics, list | tuple | set | frozenset) else topics
            if topics == []:
                self.unsubscribe()
            else:
                self._subscribe(topics, listener)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without a group's help."""
        with self._access:
            self._check_assignable()
            self._engine.steps.perform(self._commit_before_revocation())
            self._assign(partitions)

    def unsubscribe(self) -> None:
        """Read nothing and leave the group."""
        with self._access:
            self._engine.steps.perform(self._unsubscribe())

    # ---- reading

    def poll(self, timeout: float = 0.0) -> ConsumerRecords:
        """The next records, at most max.poll.records; waits up to `timeout` seconds for the first."""
        with self._access:
            found: ConsumerRecords | None = self._poll(self._take_records, timeout)
            return ConsumerRecords() if found is None else found

    def poll_arrow(self, timeout: float = 0.0, records_max: int = 100_000) -> Any:
        """As poll, as a pyarrow.Table: topic, partition, offset, timestamp, key, value, headers.

        Deserializers and interceptors play no part. Needs pyarrow."""
        from barnabas.client.consumer.arrow import table_of

        with self._access:
            found = self._poll(lambda: self._taking.columns(records_max), timeout)
            return table_of(found)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records without an end; close() from a listener, or wakeup(), ends it. The position follows each
        record: commit_sync() in the loop covers what was handed out, no more."""
        while not self._access.is_closed:
            yield from hand_out(self._engine.assignments, self.poll(NAP_SECONDS))

    def _poll(self, take: Callable[[], Any], timeout: float) -> Any:
        engine = self._engine
        deadline = time.monotonic() + timeout
        while True:
            now = self._begin_turn()
            if engine.membership is not None:
                engine.steps.perform(engine.membership.poll(deadline))
            self._commit_if_due(now)
            engine.assignments.raise_error()
            found = take()
            if found is not None or time.monotonic() >= deadline:
                return found
            engine.wait(self._has_work, min(deadline, time.monotonic() + NAP_SECONDS))

    # ---- committing

    def commit_sync(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        """Commit these offsets, or where this consumer stands; returns when the group has them."""
        with self._access:
            self._need_group()
            wanted = self._engine.consumed() if offsets is None else dict(offsets)
            self._engine.commit(wanted, self._api_seconds if timeout is None else timeout)
            self._run_callbacks()
            self._tell_committed(wanted)

    # ---- the end

    def close(self, timeout: float = 30.0) -> None:
        """Commit if that is on, leave the group, end the connections. Once is enough, twice does no harm."""
        if self._access.is_closed:
            return
        with self._access:
            self._access.is_closed = True
            try:
                self._engine.steps.perform(self._closing_steps(timeout))
            finally:
                self._engine.close()
                self._close_interceptors()
