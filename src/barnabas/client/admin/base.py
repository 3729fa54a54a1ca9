"""The base of all parts of the admin client: opening and closing, calls with a time limit, and retries.

One attempt returns a value or a KafkaError for each item. Items with a retriable error are tried again, with
growing pauses, until the time of the call is over."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from barnabas.client.admin.types import AdminError
from barnabas.client.cluster import Cluster
from barnabas.client.config import admin_config
from barnabas.client.errors import ErrorCode, KafkaError, KafkaTimeoutError, error_from
from barnabas.client.habits import Hinted, check_settings
from barnabas.client.metadata import ClusterMetadata
from barnabas.client.runtime import IoThread
from barnabas.client.settings import AdminSettings
from barnabas.client.troubles import cause_of
from barnabas.client.types import TopicPartition
from barnabas.net.broker_connection import BrokerConnection

_T = TypeVar("_T")
_K = TypeVar("_K")
_V = TypeVar("_V")

# A new topic may not be known to all brokers yet. If it is unknown after this many attempts, it does not
# exist.
UNKNOWN_TOPIC_ATTEMPTS = 3
_UNKNOWN_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_COORDINATOR_MOVED = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
)


class Call:
    """One call of a method: its time limit, its last error, and the results so far, for the error that is
    raised when the time is over."""

    def __init__(self, seconds: float, explain: Callable[[], str]) -> None:
        self.seconds = seconds
        self.explain = explain
        self.ends = asyncio.get_running_loop().time() + seconds
        self.failure: KafkaError | None = None
        self.results: dict[Any, Any] = {}
        self.errors: dict[Any, KafkaError] = {}
        self.open_items: list[Any] = []

    def timeout_error(self) -> KafkaError:
        cause = self.explain() if self.failure is None else f": {cause_of(self.failure)}"
        late = KafkaTimeoutError(f"not done within {self.seconds:g} s{cause}")
        if self.open_items and (self.results or self.errors):
            return AdminError({**self.errors, **dict.fromkeys(self.open_items, late)}, self.results)
        return late

    @property
    def left_ms(self) -> int:
        return max(1, int((self.ends - asyncio.get_running_loop().time()) * 1000))


class AdminBase(Hinted):
    def __init__(self, settings: Mapping[str, Any] | None = None, **keywords: Unpack[AdminSettings]) -> None:
        check_settings("Admin", settings)
        self._config = admin_config(settings, **keywords)
        self._io = IoThread("barnabas-admin").start()
        self._cluster: Cluster = self._io.call(self._open())

    def close(self) -> None:
        """Close the connections; waiting calls fail. May be called twice."""
        if self._io.is_running:
            self._io.call(self._cluster.close())
            self._io.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def _open(self) -> Cluster:
        cluster = Cluster(self._config)
        cluster.start()
        self._io.explain = cluster.troubles.explain
        return cluster

    # ---- one call

    def _run(self, timeout: float | None, work: Callable[[Call], Coroutine[Any, Any, _T]]) -> _T:
        seconds = self._config.seconds("default.api.timeout.ms") if timeout is None else timeout
        return self._io.call(self._bounded(seconds, work))

    async def _bounded(self, seconds: float, work: Callable[[Call], Coroutine[Any, Any, _T]]) -> _T:
        call = Call(seconds, self._io.explain)
        bound = asyncio.timeout(seconds)
        try:
            async with bound:
                return await work(call)
        except TimeoutError:
            if not bound.expired():
                raise
            raise call.timeout_error() from call.failure

    async def _retry_items(
        self,
        call: Call,
        items: Iterable[_K],
        attempt: Callable[[list[_K]], Awaitable[Mapping[_K, _V | KafkaError]]],
        unknown_topic_attempts: int = 1,
    ) -> dict[_K, _V]:
        """Try until there is a value for every item; AdminError if some have failed."""
        open_items = list(dict.fromkeys(items))
        results: dict[_K, _V] = {}
        errors: dict[_K, KafkaError] = {}
        attempts = 0
        call.results, call.errors = results, errors
        call.open_items = open_items
        while open_items:
            outcomes = await _attempt(open_items, attempt)
            attempts += 1
            left = []
            for item in open_items:
                outcome = outcomes.get(item, _NOT_ANSWERED)
                if not isinstance(outcome, KafkaError):
                    results[item] = outcome
                elif self._may_retry(outcome, attempts, unknown_topic_attempts):
                    left.append(item)
                    call.failure = outcome
                else:
                    errors[item] = outcome
            call.open_items = open_items = left
            if open_items:
                await self._pause(attempts)
        if errors:
            raise AdminError(errors, results)
        return results

    async def _retry(self, call: Call, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Run `ask` until it succeeds; errors that are not retriable are raised."""
        attempts = 0
        while True:
            try:
                return await ask()
            except KafkaError as error:
                attempts += 1
                if not self._may_retry(error, attempts, 1):
                    raise
                call.failure = error
            await self._pause(attempts)

    def _may_retry(self, error: KafkaError, attempts: int, unknown_topic_attempts: int) -> bool:
        if attempts > self._config["retries"]:
            return False
        if error.code in _UNKNOWN_TOPIC:
            return attempts < unknown_topic_attempts
        return error.retriable

    async def _pause(self, failures: int) -> None:
        await asyncio.sleep(self._cluster.backoff.seconds(failures))
        # A leader or the controller may have changed. If no broker answers, the next attempt gets the error.
        with contextlib.suppress(KafkaError):
            await self._cluster.refresh()

    # ---- choosing the broker

    async def _topics_metadata(self, topics: Collection[str] | None) -> ClusterMetadata:
        response = await self._cluster.fetch_metadata(topics)
        return ClusterMetadata().updated(response)

    async def _by_leader(
        self,
        partitions: list[TopicPartition],
        ask: Callable[[BrokerConnection, list[TopicPartition]], Awaitable[dict[TopicPartition, Any]]],
    ) -> dict[TopicPartition, Any]:
        """Ask the leader of each partition; a partition without a leader gets an error."""
        metadata = await self._topics_metadata({partition.topic for partition in partitions})
        outcomes: dict[TopicPartition, Any] = {}
        by_node: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            leader = metadata.leader_of(partition)
            if leader is None:
                outcomes[partition] = metadata.missing(partition)
            else:
                by_node.setdefault(leader.node_id, []).append(partition)
        answers = await asyncio.gather(*(self._ask_node(*item, ask) for item in by_node.items()))
        for answer in answers:
            outcomes.update(answer)
        return outcomes

    async def _ask_node(
        self,
        node_id: int,
        partitions: list[TopicPartition],
        ask: Callable[[BrokerConnection, list[TopicPartition]], Awaitable[dict[TopicPartition, Any]]],
    ) -> dict[TopicPartition, Any]:
        try:
            return await ask(await self._cluster.connection(node_id), partitions)
        except KafkaError as error:
            return dict.fromkeys(partitions, error)

    async def _ask_coordinator(
        self, kind: int, key: str, ask: Callable[[BrokerConnection], Awaitable[_T]]
    ) -> _T | KafkaError:
        """Ask the coordinator of a key. If it has changed, it is looked up again next time."""
        outcome: _T | KafkaError
        try:
            outcome = await ask(await self._cluster.coordinator(kind, key, ""))
        except KafkaError as error:
            outcome = error
        if isinstance(outcome, KafkaError) and outcome.code in _COORDINATOR_MOVED:
            self._cluster.forget_coordinator(kind, key)
        return outcome

    async def _node_ids(self) -> list[int]:
        await self._cluster.refresh()
        return list(self._cluster.metadata.nodes)


_NOT_ANSWERED = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker's answer does not contain it")


async def _attempt(
    items: list[_K], attempt: Callable[[list[_K]], Awaitable[Mapping[_K, _V | KafkaError]]]
) -> Mapping[_K, _V | KafkaError]:
    try:
        return await attempt(items)
    except KafkaError as error:
        return dict.fromkeys(items, error)


def outcome_of(error_code: int, message: str | None, value: _V) -> _V | KafkaError:
    return error_from(error_code, message) if error_code else value


def group_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics
