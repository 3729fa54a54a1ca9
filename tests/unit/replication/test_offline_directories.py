"""A log directory that fails: its replicas leave the ISR, and nothing empty takes their place."""

import errno
from pathlib import Path

import pytest
from tests.support.faulty_disk import FaultyDisk

from barnabas.clock import FakeClock
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition
from barnabas.log.disk import RealDisk
from barnabas.log.manager import LogManager, LogSettings
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import MetadataRecord, PartitionRecord, TopicRecord
from barnabas.replication.partition import Partition
from barnabas.replication.ports import IsrProposal, Surroundings
from barnabas.replication.replicas import Replicas

ME, OTHER = 1, 2
TOPIC_ID = b"t" * 16


class Proposals:
    def __init__(self) -> None:
        self.made: list[tuple[int, IsrProposal]] = []

    def propose(self, partition: Partition, proposal: IsrProposal) -> None:
        self.made.append((partition.topic_partition.partition, proposal))


def image_with(*isrs: tuple[int, ...]) -> MetadataImage:
    records: list[MetadataRecord] = [TopicRecord("topic", TOPIC_ID)]
    records += [
        PartitionRecord(TOPIC_ID, index, (ME, OTHER), isr, isr[0], leader_epoch=4, partition_epoch=7)
        for index, isr in enumerate(isrs)
    ]
    return MetadataImage().apply(records)


def new_logs(disk: RealDisk, *directories: Path) -> LogManager:
    logs = LogManager(list(directories), LogSettings("a-cluster", ME), disk, FakeClock())
    logs.load(lambda topic: TopicConfig())
    return logs


def new_replicas(logs: LogManager, proposals: Proposals | None = None) -> Replicas:
    surroundings = Surroundings(ME, FakeClock(), isr_changes=proposals or Proposals())
    return Replicas(ME, logs, lambda topic, image: TopicConfig(), surroundings)


def test_replicas_in_a_failed_directory_leave_their_isr_but_the_last_one_stays(tmp_path: Path) -> None:
    logs = new_logs(RealDisk(), tmp_path)
    proposals = Proposals()
    replicas = new_replicas(logs, proposals)
    image = image_with((ME, OTHER), (OTHER, ME), (ME,), (OTHER,))
    replicas.follow(image, image.difference(MetadataImage()))
    replicas.finish()
    replicas.leave_offline()
    assert proposals.made == []
    log = logs.get(TopicPartition("topic", 0))
    assert log is not None
    log.storage_error(OSError(errno.EIO, "broken"))
    replicas.leave_offline()
    rest = IsrProposal(leader_epoch=4, partition_epoch=7, isr=((OTHER, -1),))
    assert proposals.made == [(0, rest), (1, rest)]
    logs.shutdown()


def test_a_log_that_may_be_in_an_unreadable_directory_is_not_created_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    logs = new_logs(RealDisk(), first, second)
    replicas = new_replicas(logs)
    image = image_with((ME, OTHER), (ME,), (OTHER,))
    replicas.follow(image, image.difference(MetadataImage()))
    replicas.finish()
    logs.shutdown()
    homes = {path.name: path.parent.name for path in tmp_path.glob("*/topic-*")}
    assert set(homes.values()) == {"first", "second"}

    disk = FaultyDisk()
    disk.fail("listdir", below=second)
    logs = new_logs(disk, first, second)
    replicas = new_replicas(logs)
    replicas.follow(image, image.difference(MetadataImage()))
    replicas.finish()
    for index in range(3):
        is_in_sync = ME in image.topics["topic"].partitions[index].isr
        if homes[f"topic-{index}"] == "second" and is_in_sync:
            with pytest.raises(KafkaError) as caught:
                replicas.leader("topic", index)
            assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert not (first / f"topic-{index}").exists()
        else:
            # It is here, or the leader has everything that was lost.
            assert replicas.get("topic", index) is not None
    logs.shutdown()
