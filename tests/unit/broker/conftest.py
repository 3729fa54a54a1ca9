"""A broker without sockets for handler tests: real store, controller, logs and replicas on a temporary disk.

Requests and answers pass through the codec in the requested version, so that an answer that this version
cannot carry fails here and not at a client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.faulty_disk import FaultyDisk

from barnabas.broker import turns
from barnabas.broker.apis import ROWS
from barnabas.broker.authorization.authorizer import authorizer_of
from barnabas.broker.authorization.guard import guarded_rows
from barnabas.broker.call import Api, Call
from barnabas.broker.controller_channel import ControllerChannel
from barnabas.broker.group_coordinator import GroupCoordinator
from barnabas.broker.later import Later
from barnabas.broker.producer_ids import ProducerIds
from barnabas.broker.quotas import Quotas
from barnabas.broker.session import Session
from barnabas.broker.transaction_coordinator import TransactionCoordinator
from barnabas.broker.turns import in_turns
from barnabas.clock import FakeClock
from barnabas.config.topic import TopicConfig
from barnabas.config.values import BrokerConfig
from barnabas.errors import KafkaError
from barnabas.ids import random_uuid
from barnabas.log.manager import LogManager, LogSettings
from barnabas.metadata.brokers import Heartbeat
from barnabas.metadata.configs import ConfigRules
from barnabas.metadata.controller import Controller, ControllerSettings
from barnabas.metadata.difference import Difference
from barnabas.metadata.embedded import EmbeddedStore
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.node import MetadataNode
from barnabas.metadata.parts import PartitionImage
from barnabas.metadata.records import Listener, MetadataRecord
from barnabas.metadata.store import BrokerRegistration
from barnabas.metadata.topics import NewTopic
from barnabas.records.builder import build_batch
from barnabas.records.validation import validate
from barnabas.replication.gate import Gate
from barnabas.replication.partition import Partition, RequestCounts
from barnabas.replication.replicas import Replicas
from barnabas.security.principal import ANONYMOUS
from barnabas.wire.codec import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

BROKER_ID = 1


class Stage:
    """The parts of a broker that handlers use, and methods to call a handler."""

    rows: Mapping[int, Api] = ROWS
    is_clustered = False

    def __init__(self, directory: Path, properties: Mapping[str, str]) -> None:
        self.config = BrokerConfig(
            {"node.id": str(BROKER_ID), "log.dirs": str(directory / "logs"), **properties}
        )
        self.id = BROKER_ID
        self.authorizer = authorizer_of(self.config)
        if self.authorizer.is_enabled:
            self.rows = guarded_rows(ROWS)
        # Who asks.
        self.principal = ANONYMOUS
        self.clock = FakeClock()
        self.unknown_requests = RequestCounts()
        self.quotas = Quotas(self.config, self.clock)
        self.disk = FaultyDisk()
        self.controller_channel = ControllerChannel(self)  # type: ignore[arg-type]
        self._directory = directory
        self._runner = asyncio.Runner()
        self._runner.run(self._start())

    async def _start(self) -> None:
        store = await EmbeddedStore.open(self._directory / "metadata", cluster_id="a-cluster")
        registration = BrokerRegistration(
            BROKER_ID, random_uuid(), (Listener("PLAINTEXT", "127.0.0.1", 9092),), "rack-a"
        )
        settings = ControllerSettings(num_partitions=self.config["num.partitions"])
        self.node = await MetadataNode.start(store, registration, ConfigRules(lambda: self.config), settings)
        beat = Heartbeat(BROKER_ID, self.node.broker_epoch, self.node.image.offset)
        await self.node.controller.heartbeat(beat)
        log_dirs = [Path(name) for name in self.config.log_dirs]
        log_settings = LogSettings(self.node.cluster_id, BROKER_ID)
        self.logs = LogManager(log_dirs, log_settings, self.disk, self.clock)
        self.logs.load(lambda topic: self._config_of(topic, self.image))
        self.replicas = Replicas(BROKER_ID, self.logs, self._config_of)
        self.authorizer.follow(self.image)
        self.gate = Gate(self.replicas, self.config.inter_broker_listener.name, self.authorizer.rights)
        self.replicas.follow(self.image, self.image.difference(MetadataImage()))
        self.node.listen(self._follow)
        self.producer_ids = ProducerIds(self)  # type: ignore[arg-type]

    def _follow(self, old: MetadataImage, image: MetadataImage, difference: Difference) -> None:
        if self.authorizer.follow(image):
            self.replicas.withdraw_permits()
        self.replicas.follow(image, difference)

    @property
    def metadata(self) -> MetadataNode:
        return self.node

    def _config_of(self, topic: str, image: MetadataImage) -> TopicConfig:
        return self.config.topic_config(image.topic_config(topic))

    async def start_coordinators(self) -> None:
        """Start groups and transactions as a broker does. A second call is like a restart."""
        await self._stop_coordinators()
        self.groups = GroupCoordinator(self)  # type: ignore[arg-type]
        self.transactions = TransactionCoordinator(self)  # type: ignore[arg-type]
        self.follow_coordinators()
        self._stop_following = self.node.listen(self._changed)

    def _changed(self, old: MetadataImage, new: MetadataImage, difference: Difference) -> None:
        self.follow_coordinators()
        self.groups.topics_changed(difference)

    def follow_coordinators(self) -> None:
        self.groups.follow(self.image)
        self.transactions.follow(self.image)

    async def _stop_coordinators(self) -> None:
        if hasattr(self, "groups"):
            self._stop_following()
            await self.transactions.close()
            await self.groups.close()

    def place(self, partition: Partition, **changes: Any) -> None:
        """Give a partition another leader, epoch or set of replicas, as the metadata would."""
        isr = changes.get("isr", (BROKER_ID,))
        values = {
            "replicas": isr,
            "leader": partition.leader,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": 0,
            **changes,
            "isr": isr,
        }
        partition.follow(PartitionImage(**values))

    def close(self) -> None:
        self._runner.run(self._stop_coordinators())
        self._runner.run(self.node.close())
        self.logs.shutdown()
        self._runner.close()

    @property
    def image(self) -> MetadataImage:
        return self.node.image

    @property
    def controller(self) -> Controller:
        return self.node.controller

    @property
    def controller_id(self) -> int:
        return BROKER_ID

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(work)

    def ask(self, request: Any, version: int) -> Any:
        """What the handler of the request's API answers in that version, as a client reads it."""
        return self._runner.run(self.answer(request, version))

    async def answer(self, request: Any, version: int) -> Any:
        key = next(key for key, row in ROWS.items() if type(request).__name__ == row.name + "Request")
        header = RequestHeader(key, version, 7, "tests")
        frame = b"".join(bytes(chunk) for chunk in encode_request(header, request))
        session = Session(self.config.listeners[0], "", self.principal)
        call = Call(self, None, session, header)  # type: ignore[arg-type]
        answer = self.rows[key].handler(call, decode_request(frame[4:]).message)
        if isinstance(answer, Generator):
            answer = in_turns(answer)
        if isinstance(answer, Coroutine | Later):
            answer = await answer
        reply = b"".join(bytes(chunk) for chunk in encode_response(key, version, 7, answer))
        return decode_response(key, version, reply[4:])[1]

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        """A topic; underscores in the names of configs stand for dots."""
        overrides = {key.replace("_", "."): value for key, value in configs.items()}
        creating = self.controller.create_topics([NewTopic(name, partitions, 1, {}, overrides)])
        results = self.run(self.replicas.settled_after(creating))
        assert not isinstance(results[name], KafkaError), results[name]

    def append(self, topic: str, count: int = 1, **producer: int) -> None:
        """One batch of records to partition 0."""
        partition = self.replicas.leader(topic, 0)
        now_ms = self.clock.now_ms()
        batch = build_batch([(now_ms, b"key", b"value", [])] * count, **producer)
        partition.append(validate(memoryview(batch), partition.rules, now_ms))

    def write(self, *records: MetadataRecord) -> None:
        """Put records into the image as if they had been in the log: for brokers that do not exist."""
        self.node.follower.image = self.image.apply(records)


MakeStage = Callable[..., Stage]


@pytest.fixture
def make_stage(tmp_path: Path) -> Iterator[MakeStage]:
    """Brokers with given properties; underscores in their names stand for dots."""
    stages: list[Stage] = []

    def make(**properties: str) -> Stage:
        named = {key.replace("_", "."): value for key, value in properties.items()}
        stages.append(Stage(tmp_path, named))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    return make_stage()


@pytest.fixture
def long_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only work that waits for something ends a turn, however busy the machine is."""
    monkeypatch.setattr(turns, "TURN_SECONDS", 3600.0)
