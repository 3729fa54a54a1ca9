"""Consumers of a group: one interface for the three libraries, for the tests of groups.

A consumer is used by one thread only (members.py gives it one). Nothing here starts threads, except that
aiokafka gets the event loop it needs."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import confluent_kafka
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka import TopicPartition as AioPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AioSticky
from aiokafka.errors import BrokerResponseError as AioBrokerError
from aiokafka.structs import OffsetAndMetadata as AioOffset
from tests.clients import kafka_python_library as kafka_python
from tests.clients.client import BrokerError

T = TypeVar("T")
Place = tuple[str, int]
HEARTBEAT_MS = 200


class Seen(NamedTuple):
    topic: str
    partition: int
    offset: int
    value: bytes


@dataclass(frozen=True, slots=True)
class ConsumerSetup:
    """The settings of a consumer. `pattern` is a regular expression, used if there are no topics."""

    group: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    assignor: str = "range"
    instance_id: str | None = None
    session_timeout_ms: int = 6000
    poll_interval_ms: int = 60_000
    auto_commit: bool = False
    isolation: str = "read_uncommitted"
    protocol: str = "classic"
    metadata_age_ms: int = 60_000


class Changes:
    """The calls of the rebalance listener, in order: ("assigned" | "revoked" | "lost", places)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, frozenset[Place]]] = []

    def note(self, what: str, partitions: Iterable[Any]) -> None:
        self.calls.append((what, frozenset((each.topic, each.partition) for each in partitions)))

    def count(self, what: str) -> int:
        return sum(1 for kind, _ in self.calls if kind == what)


class GroupConsumer(Protocol):
    changes: Changes

    def poll(self, timeout_s: float) -> list[Seen]: ...

    def assignment(self) -> frozenset[Place]: ...

    def commit(self, offsets: Mapping[Place, tuple[int, str]] | None = None) -> None:
        """Commit the positions, or offsets with metadata; raises BrokerError."""

    def committed(self, place: Place) -> tuple[int, str] | None: ...

    def position(self, place: Place) -> int: ...

    def seek(self, place: Place, offset: int) -> None: ...

    def pause(self, place: Place) -> None: ...

    def resume(self, place: Place) -> None: ...

    def close(self) -> None:
        """Leave the group, unless the member is a static one."""


class ConfluentConsumer:
    name = "confluent-kafka"
    assignors = ("range", "roundrobin", "cooperative-sticky")

    def __init__(self, bootstrap: str, setup: ConsumerSetup) -> None:
        self.changes = Changes()
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": setup.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": setup.auto_commit,
            "auto.commit.interval.ms": 200,
            "isolation.level": setup.isolation,
            "max.poll.interval.ms": setup.poll_interval_ms,
            "topic.metadata.refresh.interval.ms": setup.metadata_age_ms,
            "fetch.wait.max.ms": 100,
            "reconnect.backoff.max.ms": 300,
            "group.protocol": setup.protocol,
        }
        if setup.protocol == "classic":
            settings["partition.assignment.strategy"] = setup.assignor
            settings["session.timeout.ms"] = setup.session_timeout_ms
            settings["heartbeat.interval.ms"] = HEARTBEAT_MS
        else:
            settings["group.remote.assignor"] = setup.assignor
        if setup.instance_id is not None:
            settings["group.instance.id"] = setup.instance_id
        self.library = confluent_kafka.Consumer(settings)
        self.library.subscribe(
            list(setup.topics) or [f"^{setup.pattern}"],
            on_assign=lambda _, places: self.changes.note("assigned", places),
            on_revoke=lambda _, places: self.changes.note("revoked", places),
            on_lost=lambda _, places: self.changes.note("lost", places),
        )

    def poll(self, timeout_s: float) -> list[Seen]:
        seen: list[Seen] = []
        for record in self.library.consume(100, timeout_s):
            if (error := record.error()) is not None:
                if error.code() >= 0 and not error.retriable():
                    raise BrokerError(error.code(), error.str())
                continue
            seen.append(Seen(record.topic(), record.partition(), record.offset(), record.value()))
        return seen

    def assignment(self) -> frozenset[Place]:
        return frozenset((each.topic, each.partition) for each in self.library.assignment())

    def commit(self, offsets: Mapping[Place, tuple[int, str]] | None = None) -> None:
        try:
            if offsets is None:
                self.library.commit(asynchronous=False)
                return
            places = [
                confluent_kafka.TopicPartition(topic, number, offset, metadata)
                for (topic, number), (offset, metadata) in offsets.items()
            ]
            for answer in self.library.commit(offsets=places, asynchronous=False) or []:
                if answer.error is not None:
                    raise BrokerError(answer.error.code(), answer.error.str())
        except confluent_kafka.KafkaException as raised:
            error = raised.args[0]
            if error.code() != confluent_kafka.KafkaError._NO_OFFSET:
                raise BrokerError(error.code(), error.str()) from raised

    def committed(self, place: Place) -> tuple[int, str] | None:
        (response,) = self.library.committed([confluent_kafka.TopicPartition(*place)], timeout=20)
        return None if response.offset < 0 else (response.offset, response.metadata or "")

    def position(self, place: Place) -> int:
        return int(self.library.position([confluent_kafka.TopicPartition(*place)])[0].offset)

    def seek(self, place: Place, offset: int) -> None:
        self.library.seek(confluent_kafka.TopicPartition(*place, offset))

    def pause(self, place: Place) -> None:
        self.library.pause([confluent_kafka.TopicPartition(*place)])

    def resume(self, place: Place) -> None:
        self.library.resume([confluent_kafka.TopicPartition(*place)])

    def close(self) -> None:
        self.library.close()


class _KafkaPythonListener(kafka_python.ConsumerRebalanceListener):
    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._changes.note("revoked", revoked)

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._changes.note("assigned", assigned)


class KafkaPythonConsumer:
    name = "kafka-python"
    assignors = tuple(kafka_python.ASSIGNORS)

    def __init__(self, bootstrap: str, setup: ConsumerSetup) -> None:
        self.changes = Changes()
        self.library = kafka_python.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=setup.group,
            group_instance_id=setup.instance_id,
            auto_offset_reset="earliest",
            enable_auto_commit=setup.auto_commit,
            auto_commit_interval_ms=200,
            isolation_level=setup.isolation,
            partition_assignment_strategy=[kafka_python.ASSIGNORS[setup.assignor]],
            session_timeout_ms=setup.session_timeout_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=setup.poll_interval_ms,
            metadata_max_age_ms=setup.metadata_age_ms,
            fetch_max_wait_ms=100,
            reconnect_backoff_max_ms=300,
        )
        listener = _KafkaPythonListener(self.changes)
        if setup.topics:
            self.library.subscribe(topics=list(setup.topics), listener=listener)
        else:
            self.library.subscribe(pattern=f"^{setup.pattern}", listener=listener)

    def poll(self, timeout_s: float) -> list[Seen]:
        try:
            response = self.library.poll(timeout_ms=int(timeout_s * 1000))
        except kafka_python.errors.KafkaConnectionError:
            # While there is no broker, poll raises an error; applications continue to poll.
            return []
        return [
            Seen(record.topic, record.partition, record.offset, record.value)
            for records in response.values()
            for record in records
        ]

    def assignment(self) -> frozenset[Place]:
        return frozenset((each.topic, each.partition) for each in self.library.assignment())

    def commit(self, offsets: Mapping[Place, tuple[int, str]] | None = None) -> None:
        requested = offsets and {
            kafka_python.TopicPartition(*place): kafka_python.OffsetAndMetadata(offset, metadata, -1)
            for place, (offset, metadata) in offsets.items()
        }
        try:
            self.library.commit(requested)
        except kafka_python.BrokerResponseError as raised:
            raise BrokerError(raised.errno, str(raised)) from raised

    def committed(self, place: Place) -> tuple[int, str] | None:
        response = self.library.committed(kafka_python.TopicPartition(*place), metadata=True)
        return None if response is None else (response.offset, response.metadata)

    def position(self, place: Place) -> int:
        return int(self.library.position(kafka_python.TopicPartition(*place)))

    def seek(self, place: Place, offset: int) -> None:
        self.library.seek(kafka_python.TopicPartition(*place), offset)

    def pause(self, place: Place) -> None:
        self.library.pause(kafka_python.TopicPartition(*place))

    def resume(self, place: Place) -> None:
        self.library.resume(kafka_python.TopicPartition(*place))

    def close(self) -> None:
        self.library.close()


class _AioListener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._changes.note("revoked", revoked)

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._changes.note("assigned", assigned)


AIO_ASSIGNORS = {"range": AioRange, "roundrobin": AioRoundRobin, "sticky": AioSticky}


class AiokafkaConsumer:
    name = "aiokafka"
    assignors = tuple(AIO_ASSIGNORS)

    def __init__(self, bootstrap: str, setup: ConsumerSetup) -> None:
        self.changes = Changes()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.library: AIOKafkaConsumer = self._run(self._started(bootstrap, setup))

    async def _started(self, bootstrap: str, setup: ConsumerSetup) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=setup.group,
            group_instance_id=setup.instance_id,
            auto_offset_reset="earliest",
            enable_auto_commit=setup.auto_commit,
            auto_commit_interval_ms=200,
            isolation_level=setup.isolation,
            partition_assignment_strategy=[AIO_ASSIGNORS[setup.assignor]],
            session_timeout_ms=setup.session_timeout_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=setup.poll_interval_ms,
            metadata_max_age_ms=setup.metadata_age_ms,
            fetch_max_wait_ms=100,
        )
        listener = _AioListener(self.changes)
        if setup.topics:
            consumer.subscribe(topics=list(setup.topics), listener=listener)
        else:
            consumer.subscribe(pattern=f"^{setup.pattern}", listener=listener)
        await consumer.start()
        return consumer

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)
        except AioBrokerError as raised:
            raise BrokerError(raised.errno, str(raised)) from raised

    def poll(self, timeout_s: float) -> list[Seen]:
        response = self._run(self.library.getmany(timeout_ms=int(timeout_s * 1000), max_records=100))
        return [
            Seen(record.topic, record.partition, record.offset, record.value)
            for records in response.values()
            for record in records
        ]

    def assignment(self) -> frozenset[Place]:
        return frozenset((each.topic, each.partition) for each in self.library.assignment())

    def commit(self, offsets: Mapping[Place, tuple[int, str]] | None = None) -> None:
        requested = offsets and {AioPartition(*place): AioOffset(*pair) for place, pair in offsets.items()}
        self._run(self.library.commit(requested))

    def committed(self, place: Place) -> tuple[int, str] | None:
        # The library returns only the offset.
        response = self._run(self.library.committed(AioPartition(*place)))
        return None if response is None else (response, "")

    def position(self, place: Place) -> int:
        return int(self._run(self.library.position(AioPartition(*place))))

    def seek(self, place: Place, offset: int) -> None:
        self._on_loop(lambda: self.library.seek(AioPartition(*place), offset))

    def pause(self, place: Place) -> None:
        self._on_loop(lambda: self.library.pause(AioPartition(*place)))

    def resume(self, place: Place) -> None:
        self._on_loop(lambda: self.library.resume(AioPartition(*place)))

    def _on_loop(self, action: Callable[[], None]) -> None:
        async def act() -> None:
            action()

        self._run(act())

    def close(self) -> None:
        try:
            self._run(self.library.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(20)
            self._loop.close()


CONSUMERS: dict[str, Callable[[str, ConsumerSetup], GroupConsumer]] = {
    each.name: each for each in (ConfluentConsumer, KafkaPythonConsumer, AiokafkaConsumer)
}
ASSIGNORS: dict[str, tuple[str, ...]] = {
    each.name: each.assignors for each in (ConfluentConsumer, KafkaPythonConsumer, AiokafkaConsumer)
}
