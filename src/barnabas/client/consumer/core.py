"""What the consumer and its asyncio form share: everything that does not wait for an answer."""

import concurrent.futures
import logging
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Never, Unpack

from barnabas.client.config import consumer_config
from barnabas.client.consumer.access import Access
from barnabas.client.consumer.buffer_reader import BufferReader
from barnabas.client.consumer.commits import Offsets
from barnabas.client.consumer.engine import Engine
from barnabas.client.consumer.lookups import with_retries
from barnabas.client.consumer.membership import RebalanceListener
from barnabas.client.consumer.records import ConsumerRecords
from barnabas.client.consumer.state import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, RESET, PartitionState
from barnabas.client.consumer.steps import RunOnIoThread, Steps, Wait
from barnabas.client.errors import ErrorCode, KafkaError, KafkaTimeoutError, RetriableCommitFailedError
from barnabas.client.generic import K, V
from barnabas.client.habits import Hinted, check_settings
from barnabas.client.settings import ConsumerSettings
from barnabas.client.types import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    SubscriptionPattern,
    TopicPartition,
)

CommitCallback = Callable[[Offsets, Exception | None], object]
Topics = Iterable[str] | re.Pattern[str] | SubscriptionPattern
_log = logging.getLogger(__name__)
# The longest wait of a poll before it checks again whether a commit is due or a pattern matches new topics.
RECHECK_SECONDS = 1.0
REVOCATION_COMMIT_SECONDS_MAX = 5.0
_EXCLUSIVE = "a consumer reads topics, a pattern or assigned partitions: call unsubscribe() before changing"


class ConsumerCore(Hinted, Generic[K, V]):
    """Used by one thread at a time: every method enters `_access`."""

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *topics: Never,
        **keywords: Unpack[ConsumerSettings[K, V]],
    ) -> None:
        check_settings(type(self).__name__, settings, topics)
        config = consumer_config(settings, **keywords)
        self._access = Access()
        self._engine = Engine(config, self._access)
        self._config = config
        self._buffer_reader = BufferReader(self._engine.assignments)
        self._topics: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | SubscriptionPattern | None = None
        self._matched_against: object = None
        self._is_assigned_by_user = False
        self._listener: Any = RebalanceListener()
        self._interceptors: tuple[Any, ...] = tuple(config["interceptor.classes"])
        self._callbacks: deque[Callable[[], object]] = deque()
        self._commits_in_flight: set[concurrent.futures.Future[None]] = set()
        self._auto_commits: bool = config["enable.auto.commit"] and config["group.id"] is not None
        self._commit_due = time.monotonic() + config.seconds("auto.commit.interval.ms")
        self._api_seconds = config.seconds("default.api.timeout.ms")
        context = self._engine.membership_context
        context.topics = lambda: self._topics
        context.pattern = self._server_pattern
        context.listener = lambda: self._listener
        context.before_revocation = self._commit_before_revocation

    # ---- what to read

    def _subscribe(self, topics: Topics, listener: Any) -> None:
        if isinstance(topics, str):
            raise TypeError("subscribe needs a list of topics or a compiled pattern, not a string")
        if not self._config["group.id"]:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "Set group.id to subscribe.")
        is_pattern = isinstance(topics, re.Pattern | SubscriptionPattern)
        had_any = bool(self._topics or self._pattern)
        if self._is_assigned_by_user or (had_any and is_pattern != (self._pattern is not None)):
            raise RuntimeError(_EXCLUSIVE)
        if isinstance(topics, SubscriptionPattern) and self._config["group.protocol"].lower() != "consumer":
            raise RuntimeError(
                "a SubscriptionPattern needs group.protocol=consumer; use re.compile(...) instead"
            )
        self._listener = listener or RebalanceListener()
        if isinstance(topics, SubscriptionPattern):
            self._pattern, self._topics = topics, ()
        elif isinstance(topics, re.Pattern):
            self._pattern, self._matched_against = topics, None
            self._engine.io.call_soon(self._engine.cluster.track_all)
        else:
            self._topics = tuple(dict.fromkeys(topics))
            self._engine.io.call_soon(self._engine.cluster.track, self._topics)
        self._engine.join_group()

    def _server_pattern(self) -> str:
        return self._pattern.pattern if isinstance(self._pattern, SubscriptionPattern) else ""

    def _assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._is_assigned_by_user = True
        self._engine.assignments.replace(TopicPartition(*each) for each in partitions)

    def _check_assignable(self) -> None:
        if self._topics or self._pattern:
            raise RuntimeError(_EXCLUSIVE)

    def _unsubscribe(self) -> Steps[None]:
        yield from self._engine.leave_group(self._api_seconds)
        self._engine.assignments.replace(())
        self._topics, self._pattern, self._is_assigned_by_user = (), None, False

    def subscription(self) -> set[str]:
        """The subscribed topics; with a pattern, the topics that match it now."""
        with self._access:
            if isinstance(self._pattern, SubscriptionPattern):
                return {each.topic for each in self._engine.assignments.states}
            return set(self._topics)

    def assignment(self) -> set[TopicPartition]:
        """The partitions that this consumer reads now."""
        with self._access:
            return set(self._engine.assignments.states)

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The identity of this consumer in its group, for Producer.send_offsets_to_transaction."""
        with self._access:
            self._require_group()
            identity = self._engine.identity()
            return ConsumerGroupMetadata(
                self._config["group.id"],
                identity.epoch,
                identity.member_id,
                self._config["group.instance.id"],
            )

    # ---- reading

    def _begin_turn(self) -> float:
        """Begin one turn of a poll. Returns the time."""
        if not (self._topics or self._pattern or self._is_assigned_by_user):
            raise RuntimeError("subscribe to topics or assign partitions before polling")
        self._access.check_wakeup()
        self._engine.membership_context.last_poll = now = time.monotonic()
        self._run_callbacks()
        self._match_pattern()
        return now

    def _take_records(self) -> ConsumerRecords[Any, Any] | None:
        taken = self._buffer_reader.records(self._config["max.poll.records"])
        if not taken:
            return None
        records = ConsumerRecords(taken)
        for interceptor in self._interceptors:
            records = self._intercepted(interceptor, records)
        return records

    def _has_work(self) -> bool:
        engine = self._engine
        if engine.assignments.errors or (engine.membership is not None and engine.membership.has_work):
            return True
        if isinstance(self._pattern, re.Pattern) and self._matched_against is not engine.cluster.metadata:
            return True
        return self._buffer_reader.is_ready()

    def _match_pattern(self) -> None:
        metadata = self._engine.cluster.metadata
        if not isinstance(self._pattern, re.Pattern) or self._matched_against is metadata:
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

    def _intercepted(self, interceptor: Any, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        try:
            changed: ConsumerRecords[Any, Any] = interceptor.on_consume(records)
            return changed
        except Exception:
            # As in Kafka: the records are returned even if an interceptor fails.
            _log.exception("an interceptor failed in on_consume")
            return records

    # ---- committing

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """Commit without waiting; `callback(offsets, error or None)` is called by a later poll or commit."""
        with self._access:
            self._require_group()
            to_commit = self._engine.consumed() if offsets is None else dict(offsets)
            self._commit_in_background(to_commit, callback)

    def _commit_in_background(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        future = self._engine.io.run(self._engine.commits.commit(offsets))
        self._commits_in_flight.add(future)

        def done(_: object) -> None:
            self._callbacks.append(lambda: self._committed_in_background(offsets, future, callback))
            self._commits_in_flight.discard(future)
            self._engine.notify()

        future.add_done_callback(done)

    def _committed_in_background(
        self, offsets: Offsets, future: concurrent.futures.Future[None], callback: CommitCallback | None
    ) -> None:
        error = None if future.cancelled() else future.exception()
        failure = error if isinstance(error, Exception) else None
        if isinstance(failure, KafkaError) and failure.retriable:
            failure = RetriableCommitFailedError(str(failure), failure.code)
        if failure is None:
            self._run_commit_interceptors(offsets)
        if callback is not None:
            callback(offsets, failure)
        elif failure is not None:
            _log.warning("cannot commit offsets: %s", failure)

    def _finish_commits(self, timeout: float) -> Steps[None]:
        """Wait for the commits in flight, so that LeaveGroup does not overtake them."""
        yield Wait(lambda: not self._commits_in_flight, time.monotonic() + timeout)
        self._run_callbacks()

    def _run_callbacks(self) -> None:
        while self._callbacks:
            self._callbacks.popleft()()

    def _run_commit_interceptors(self, offsets: Offsets) -> None:
        for interceptor in self._interceptors:
            if hasattr(interceptor, "on_commit"):
                interceptor.on_commit(offsets)

    def _commit_if_due(self, now: float) -> None:
        if self._auto_commits and now >= self._commit_due:
            self._commit_due = now + self._config.seconds("auto.commit.interval.ms")
            consumed = self._engine.consumed()
            if consumed:
                self._commit_in_background(consumed, None)

    def _commit_before_revocation(self) -> Steps[None]:
        consumed = self._engine.consumed()
        if not (self._auto_commits and consumed):
            return
        network, commits = self._engine.network, self._engine.commits
        seconds = min(self._api_seconds, REVOCATION_COMMIT_SECONDS_MAX)
        try:
            yield RunOnIoThread(
                lambda: with_retries(network, lambda: commits.commit(consumed), seconds), seconds + 1
            )
            self._run_commit_interceptors(consumed)
        except KafkaError as error:
            _log.warning("cannot commit offsets before the partitions are revoked: %s", error)

    def _require_group(self) -> None:
        if not self._config["group.id"]:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "Set group.id to commit offsets.")

    # ---- positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read the partition from this offset on."""
        with self._access:
            position = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
            if position.offset < 0:
                raise ValueError("an offset must not be negative")
            with self._engine.assignments.signal:
                self._state(partition).move_to(position.offset, position.leader_epoch)
            self._engine.assignments.wake()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go to the first record of these partitions, or of all assigned partitions if none is given."""
        self._seek_to_time(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go to the end of these partitions, or of all assigned partitions if none is given."""
        self._seek_to_time(partitions, LATEST_TIMESTAMP)

    def _seek_to_time(self, partitions: tuple[TopicPartition, ...], timestamp: int) -> None:
        with self._access:
            with self._engine.assignments.signal:
                for each in partitions or tuple(self._engine.assignments.states):
                    self._state(each).look_up(RESET, timestamp)
            self._engine.assignments.wake()

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until resume(); their positions do not change."""
        self._set_paused(partitions, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again after pause()."""
        self._set_paused(partitions, False)

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        with self._access:
            return {each for each, state in self._engine.assignments.states.items() if state.paused}

    def _set_paused(self, partitions: tuple[TopicPartition, ...], paused: bool) -> None:
        with self._access:
            for each in partitions:
                self._state(each).paused = paused
            self._engine.assignments.wake()

    def _position_unknown(self, partition: TopicPartition) -> KafkaTimeoutError:
        cause = self._engine.network.explain()
        return KafkaTimeoutError(f"cannot find the position in {partition} within the timeout{cause}")

    def _state(self, partition: TopicPartition) -> PartitionState:
        if not isinstance(partition, tuple):
            raise TypeError(f"give partitions one by one, as in pause(*partitions), not {partition!r}")
        state = self._engine.assignments.states.get(TopicPartition(*partition))
        if state is None:
            raise ValueError(f"{partition} is not assigned to this consumer")
        return state

    # ---- lag, metrics, closing

    def current_lag(self, partition: TopicPartition) -> int | None:
        """How many records follow the position, according to the last fetch; None if that is not known."""
        with self._access:
            return self._state(partition).lag(self._config["isolation.level"] == "read_committed")

    def metrics(self) -> dict[str, Any]:
        """Metrics by Kafka's names; lag and lead also per partition, under "partitions"."""
        with self._access:
            return self._buffer_reader.metrics(self._config["isolation.level"] == "read_committed")

    def wakeup(self) -> None:
        """End the current or next wait of this consumer with WakeupError. Other threads may call it."""
        self._access.wakeup(self._engine.assignments.signal)

    def _closing_steps(self, timeout: float) -> Steps[None]:
        yield from self._finish_commits(timeout)
        if self._engine.membership is None:
            yield from self._commit_before_revocation()
        yield from self._engine.leave_group(timeout)
        self._run_callbacks()

    def _close_interceptors(self) -> None:
        for interceptor in self._interceptors:
            if hasattr(interceptor, "close"):
                interceptor.close()
