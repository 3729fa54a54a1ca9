"""The partitions of one broker on a temporary disk, with metadata given by the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.clock import FakeClock
from barnabas.config.topic import TopicConfig
from barnabas.config.values import BrokerConfig
from barnabas.ids import Uuid
from barnabas.log.disk import RealDisk
from barnabas.log.manager import LogManager, LogSettings
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import MetadataRecord, PartitionRecord, TopicRecord
from barnabas.records.builder import build_batch
from barnabas.records.validation import validate
from barnabas.replication.gate import Gate
from barnabas.replication.partition import Partition
from barnabas.replication.ports import IsrProposal, Surroundings
from barnabas.replication.replicas import Replicas

ME, OTHER, THIRD = 1, 2, 3
LISTENER = "PLAINTEXT"
LAG_MS = 10_000


class Proposals:
    """The proposals of the leaders, for the test to answer."""

    def __init__(self) -> None:
        self.made: list[tuple[Partition, IsrProposal]] = []

    def propose(self, partition: Partition, proposal: IsrProposal) -> None:
        self.made.append((partition, proposal))

    @property
    def members(self) -> list[tuple[int, ...]]:
        return [proposal.members for _, proposal in self.made]


class Held:
    """What one broker holds, and the metadata it follows."""

    def __init__(self, directory: Path) -> None:
        self.clock = FakeClock()
        self.config = BrokerConfig({"node.id": str(ME), "log.dirs": str(directory)})
        self.logs = LogManager([directory], LogSettings("a-cluster", ME), RealDisk(), self.clock)
        self.logs.load(lambda topic: self.config_of(topic, MetadataImage()))
        self.image = MetadataImage()
        self.proposals = Proposals()
        surroundings = Surroundings(ME, self.clock, LAG_MS / 1000, self.proposals)
        self.replicas = Replicas(ME, self.logs, self.config_of, surroundings)
        self.gate = Gate(self.replicas, LISTENER)

    def config_of(self, topic: str, image: MetadataImage) -> TopicConfig:
        return self.config.topic_config(image.topic_config(topic))

    def apply(self, *records: MetadataRecord) -> None:
        old, self.image = self.image, self.image.apply(records)
        self.replicas.follow(self.image, self.image.difference(old))

    def create(
        self, name: str, partitions: int = 1, *, isr: tuple[int, ...] = (ME,), leader: int = ME
    ) -> Uuid:
        topic_id = name.encode().ljust(16, b"-")
        placed = [
            PartitionRecord(topic_id, index, (ME, OTHER), isr, leader, leader_epoch=3)
            for index in range(partitions)
        ]
        self.apply(TopicRecord(name, topic_id), *placed)
        return topic_id

    def partition(self, name: str = "topic", index: int = 0) -> Partition:
        partition = self.replicas.get(name, index)
        assert partition is not None
        return partition

    def append(self, partition: Partition, count: int = 1) -> None:
        now_ms = self.clock.now_ms()
        data = build_batch([(now_ms, b"key", b"value", [])] * count)
        partition.append(validate(memoryview(data), partition.rules, now_ms))


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    held = Held(tmp_path)
    yield held
    held.logs.shutdown()
