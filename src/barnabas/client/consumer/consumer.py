"""The consumer: subscribe or assign, poll, commit, seek. It belongs to one thread at a time."""

import logging
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from barnabas.client.config import consumer_config
from barnabas.client.consumer.access import Access
from barnabas.client.consumer.commits import Offsets
from barnabas.client.consumer.engine import Engine
from barnabas.client.consumer.membership import RebalanceListener
from barnabas.client.consumer.queries import OffsetQueries
from barnabas.client.consumer.records import ConsumerRecord, ConsumerRecords
from barnabas.client.consumer.state import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, RESET
from barnabas.client.consumer.taking import Taking
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.types import OffsetAndMetadata, TopicPartition

CommitCallback = Callable[[Offsets, Exception | None], object]
_log = logging.getLogger(__name__)
# How long a wait may last before a poll looks again at what is due: commits, patterns.
NAP_SECONDS = 1.0


class Consumer(OffsetQueries):
    """Reads records. Settings are Kafka's, with underscores, or a dict with dots.

    with Consumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        for record in consumer.poll(1.0):
            print(record.key, record.value)
        consumer.commit_sync()
    """

    def __init__(self, settings: Mapping[str, Any] | None = None, **keywords: Any) -> None:
        config = consumer_config(settings, **keywords)
        self._access = Access()
        self._engine = Engine(config, self._access)
        self._config = config
        self._taking = Taking(self._engine.assignments)
        self._topics: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | None = None
        self._matched_against: object = None
        self._is_assigned_by_user = False
        self._listener: Any = RebalanceListener()
        self._interceptors: tuple[Any, ...] = tuple(config["interceptor.classes"])
        self._callbacks: deque[Callable[[], object]] = deque()
        self._commits_itself: bool = config["enable.auto.commit"] and config["group.id"] is not None
        self._commit_due = time.monotonic() + config.seconds("auto.commit.interval.ms")
        self._api_seconds = config.seconds("default.api.timeout.ms")
        around = self._engine.around
        around.topics = lambda: self._topics
        around.listener = lambda: self._listener
        around.before_revocation = self._commit_before_revocation

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what to read

    def subscribe(
        self, topics: Iterable[str] | re.Pattern[str], listener: RebalanceListener | None = None
    ) -> None:
        """Read these topics, or all whose whole name matches the pattern, as a member of the group."""
        with self._access:
            if isinstance(topics, str):
                raise TypeError("subscribe takes a list of topics, or a compiled pattern")
            if not self._config["group.id"]:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID, "To subscribe, a consumer needs a group.id.")
            is_pattern = isinstance(topics, re.Pattern)
            if self._is_assigned_by_user or (self._topics and is_pattern != (self._pattern is not None)):
                raise RuntimeError(
                    "topics, a pattern and assigned partitions exclude each other: unsubscribe first"
                )
            self._listener = listener or RebalanceListener()
            if isinstance(topics, re.Pattern):
                self._pattern = topics
                self._engine.io.call_soon(self._engine.cluster.want_all)
            else:
                self._topics = tuple(dict.fromkeys(topics))
                if not self._topics:
                    self.unsubscribe()
                    return
                self._engine.io.call_soon(self._engine.cluster.want, self._topics)
            self._engine.join_group()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without a group's help."""
        with self._access:
            if self._topics or self._pattern:
                raise RuntimeError(
                    "topics, a pattern and assigned partitions exclude each other: unsubscribe first"
                )
            self._commit_before_revocation()
            self._is_assigned_by_user = True
            self._engine.assignments.replace(TopicPartition(*each) for each in partitions)

    def unsubscribe(self) -> None:
        """Read nothing and leave the group."""
        with self._access:
            self._engine.leave_group(self._api_seconds)
            self._engine.assignments.replace(())
            self._topics, self._pattern, self._is_assigned_by_user = (), None, False

    def subscription(self) -> set[str]:
        with self._access:
            return set(self._topics)

    def assignment(self) -> set[TopicPartition]:
        with self._access:
            return set(self._engine.assignments.states)

    # ---- reading

    def poll(self, timeout: float = 0.0) -> ConsumerRecords:
        """The next records, at most max.poll.records; waits up to `timeout` seconds for the first."""
        with self._access:
            room = self._config["max.poll.records"]
            found = self._poll(lambda: self._taking.records(room), timeout) or {}
            records = ConsumerRecords(found)
            for interceptor in self._interceptors:
                records = self._intercepted(interceptor, records)
            return records

    def poll_arrow(self, timeout: float = 0.0, records_max: int = 100_000) -> Any:
        """As poll, as a pyarrow.Table: topic, partition, offset, timestamp, key, value, headers.

        Deserializers and interceptors play no part. Needs pyarrow."""
        from barnabas.client.consumer.arrow import table_of

        with self._access:
            found = self._poll(lambda: self._taking.columns(records_max), timeout)
            return table_of(found)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records without an end. close() from a listener, or wakeup(), ends it."""
        while not self._access.is_closed:
            yield from self.poll(NAP_SECONDS)

    def _poll(self, take: Callable[[], Any], timeout: float) -> Any:
        if not (self._topics or self._pattern or self._is_assigned_by_user):
            raise RuntimeError("subscribe to topics or assign partitions before polling")
        engine = self._engine
        deadline = time.monotonic() + timeout
        while True:
            self._access.check_wakeup()
            engine.around.last_poll = now = time.monotonic()
            self._run_callbacks()
            self._match_pattern()
            if engine.membership is not None:
                engine.membership.poll(deadline)
            self._commit_if_due(now)
            engine.assignments.raise_error()
            found = take()
            if found or time.monotonic() >= deadline:
                return found
            engine.wait(self._has_work, min(deadline, time.monotonic() + NAP_SECONDS))

    def _has_work(self) -> bool:
        engine = self._engine
        if engine.assignments.errors or (engine.membership is not None and engine.membership.has_work):
            return True
        if self._pattern is not None and self._matched_against is not engine.cluster.metadata:
            return True
        return self._taking.is_ready()

    def _match_pattern(self) -> None:
        metadata = self._engine.cluster.metadata
        if self._pattern is None or self._matched_against is metadata:
            return
        self._matched_against = metadata
        skips_internal = self._config["exclude.internal.topics"]
        topics = tuple(
            name
            for name, topic in sorted(metadata.topics.items())
            if self._pattern.fullmatch(name) and not (topic.is_internal and skips_internal)
        )
        if topics != self._topics and self._engine.membership is not None:
            self._topics = topics
            self._engine.membership.subscription_changed()

    def _intercepted(self, interceptor: Any, records: ConsumerRecords) -> ConsumerRecords:
        try:
            changed: ConsumerRecords = interceptor.on_consume(records)
            return changed
        except Exception:
            # As in Kafka: an interceptor cannot stop the records.
            _log.exception("an interceptor failed in on_consume")
            return records

    # ---- committing

    def commit_sync(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        """Commit these offsets, or where this consumer stands; returns when the group has them."""
        with self._access:
            self._need_group()
            wanted = self._engine.consumed() if offsets is None else dict(offsets)
            self._engine.commit(wanted, self._api_seconds if timeout is None else timeout)
            self._run_callbacks()
            self._tell_committed(wanted)

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """Commit without waiting; `callback(offsets, error or None)` is called by a later poll or commit."""
        with self._access:
            self._need_group()
            wanted = self._engine.consumed() if offsets is None else dict(offsets)
            self._commit_in_background(wanted, callback)

    def _commit_in_background(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        future = self._engine.io.run(self._engine.commits.commit(offsets))

        def done(_: object) -> None:
            self._callbacks.append(
                lambda: self._committed_in_background(offsets, future.exception(), callback)
            )
            self._engine.notify()

        future.add_done_callback(done)

    def _committed_in_background(
        self, offsets: Offsets, error: BaseException | None, callback: CommitCallback | None
    ) -> None:
        failure = error if isinstance(error, Exception) else None
        if failure is None:
            self._tell_committed(offsets)
        if callback is not None:
            callback(offsets, failure)
        elif failure is not None:
            _log.warning("offsets were not committed: %s", failure)

    def _run_callbacks(self) -> None:
        while self._callbacks:
            self._callbacks.popleft()()

    def _tell_committed(self, offsets: Offsets) -> None:
        for interceptor in self._interceptors:
            if hasattr(interceptor, "on_commit"):
                interceptor.on_commit(offsets)

    def _commit_if_due(self, now: float) -> None:
        if self._commits_itself and now >= self._commit_due:
            self._commit_due = now + self._config.seconds("auto.commit.interval.ms")
            consumed = self._engine.consumed()
            if consumed:
                self._commit_in_background(consumed, None)

    def _commit_before_revocation(self) -> None:
        consumed = self._engine.consumed()
        if not (self._commits_itself and consumed):
            return
        try:
            self._engine.commit(consumed, min(self._api_seconds, 5.0))
            self._tell_committed(consumed)
        except KafkaError as error:
            _log.warning("offsets were not committed before partitions were given up: %s", error)

    def _need_group(self) -> None:
        if not self._config["group.id"]:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "To commit, a consumer needs a group.id.")

    # ---- places

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read that partition from there on."""
        with self._access:
            place = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
            if place.offset < 0:
                raise ValueError("an offset is not negative")
            with self._engine.assignments.signal:
                self._state(partition).place(place.offset, place.leader_epoch)
            self._engine.assignments.wake()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """To the first record of these partitions; without any, of all that are assigned."""
        self._seek_to_time(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._seek_to_time(partitions, LATEST_TIMESTAMP)

    def _seek_to_time(self, partitions: tuple[TopicPartition, ...], timestamp: int) -> None:
        with self._access:
            with self._engine.assignments.signal:
                for each in partitions or tuple(self._engine.assignments.states):
                    self._state(each).ask(RESET, timestamp)
            self._engine.assignments.wake()

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these until resume(); their places stay."""
        self._set_paused(partitions, True)

    def resume(self, *partitions: TopicPartition) -> None:
        self._set_paused(partitions, False)

    def paused(self) -> set[TopicPartition]:
        with self._access:
            return {each for each, state in self._engine.assignments.states.items() if state.paused}

    def _set_paused(self, partitions: tuple[TopicPartition, ...], paused: bool) -> None:
        with self._access:
            for each in partitions:
                self._state(each).paused = paused
            self._engine.assignments.wake()

    # ---- the rest

    def metrics(self) -> dict[str, Any]:
        """Figures by Kafka's names; lag and lead also per partition, under "partitions"."""
        with self._access:
            return self._taking.metrics(self._config["isolation.level"] == "read_committed")

    def wakeup(self) -> None:
        """End a wait of this consumer, now or the next, with WakeupError. For other threads."""
        self._access.wakeup(self._engine.assignments.signal)

    def close(self, timeout: float = 30.0) -> None:
        """Commit if that is on, leave the group, end the connections. Once is enough, twice does no harm."""
        if self._access.is_closed:
            return
        with self._access:
            self._access.is_closed = True
            try:
                if self._engine.membership is None:
                    self._commit_before_revocation()
                self._engine.leave_group(timeout)
                self._run_callbacks()
            finally:
                self._engine.close()
                for interceptor in self._interceptors:
                    if hasattr(interceptor, "close"):
                        interceptor.close()
