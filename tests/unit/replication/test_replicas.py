"""How a broker's partitions follow the metadata: taken, changed, let go, and each by itself."""

import errno
import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
from tests.unit.replication.conftest import ME, OTHER, Held

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.difference import Difference
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import BROKER_RESOURCE, TOPIC_RESOURCE
from barnabas.metadata.records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import PartitionsFailed


def code_of(held: Held, topic: str = "topic", index: int = 0) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        held.replicas.leader(topic, index)
    return refused.value.code


def test_holds_what_the_image_places_here(held: Held) -> None:
    held.create("topic", 2)
    held.apply(
        TopicRecord("far", bytes(15) + b"1"), PartitionRecord(bytes(15) + b"1", 0, (OTHER,), (OTHER,), OTHER)
    )
    assert [partition.topic_partition for partition in held.replicas.all()] == [("topic", 0), ("topic", 1)]
    assert held.replicas.leader("topic", 1) is held.partition(index=1)
    assert code_of(held, "far") == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(held, "topic", 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(held, "nothing") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_only_the_partitions_that_changed_are_visited(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    topic_id = held.create("topic", 15)
    visited: list[int] = []
    follow = Partition.follow
    monkeypatch.setattr(
        Partition,
        "follow",
        lambda self, image: (visited.append(self.topic_partition.partition), follow(self, image))[1],
    )
    held.apply(PartitionChangeRecord(topic_id, 7, isr=(ME, OTHER)))
    assert visited == [7]
    assert held.partition(index=7).isr == (ME, OTHER)


def test_another_leader_is_followed(held: Held) -> None:
    topic_id = held.create("topic")
    permit = held.partition().permit()
    held.apply(PartitionChangeRecord(topic_id, 0, leader=OTHER))
    assert permit.partition is None
    assert code_of(held) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    held.apply(PartitionChangeRecord(topic_id, 0, leader=ME))
    assert held.replicas.leader("topic", 0).leader_epoch > 3


def test_a_partition_that_moves_away_is_let_go_with_its_directory(held: Held, tmp_path: Path) -> None:
    topic_id = held.create("topic", 2)
    partition = held.partition()
    permit, outcomes = partition.permit(), list[bool]()
    partition.committed.when(1, outcomes.append)
    held.apply(PartitionChangeRecord(topic_id, 0, leader=OTHER, isr=(OTHER,), replicas=(OTHER,)))
    assert (permit.partition, outcomes) == (None, [False])
    assert code_of(held) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not (tmp_path / "topic-0").exists()
    assert held.replicas.leader("topic", 1)
    held.apply(PartitionChangeRecord(topic_id, 0, leader=ME, isr=(ME,), replicas=(ME,)))
    assert held.replicas.leader("topic", 0).log.log_end_offset == 0


def test_a_deleted_topic_is_let_go(held: Held, tmp_path: Path) -> None:
    topic_id = held.create("topic")
    permit = held.partition().permit()
    held.apply(RemoveTopicRecord(topic_id))
    assert permit.partition is None
    assert code_of(held) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not (tmp_path / "topic-0").exists()


def test_a_deleted_topic_is_not_kept_in_memory_by_those_who_hold_permits(held: Held) -> None:
    topic_id = held.create("topic")
    permit = held.partition().permit()
    partition = weakref.ref(held.partition())
    gc.collect()
    gc.disable()
    try:
        held.apply(RemoveTopicRecord(topic_id))
        assert (permit.partition, partition()) == (None, None)
    finally:
        gc.enable()


def test_the_same_change_twice_does_not_take_a_newer_topic_of_the_name(held: Held) -> None:
    old_id = held.create("topic")
    before = held.image
    new_id = b"newer".ljust(16, b"-")
    held.apply(
        RemoveTopicRecord(old_id),
        TopicRecord("topic", new_id),
        PartitionRecord(new_id, 0, (ME,), (ME,), ME),
    )
    newer = held.partition()
    held.append(newer)
    held.replicas.follow(held.image, held.image.difference(before))
    assert held.partition() is newer
    assert (newer.topic_id, newer.log.log_end_offset) == (new_id, 1)


@pytest.mark.parametrize("resource", [(TOPIC_RESOURCE, "topic"), (BROKER_RESOURCE, "")])
def test_configs_reach_the_partitions_they_concern(held: Held, resource: tuple[int, str]) -> None:
    held.create("topic", 2)
    held.create("other")
    permits = [held.partition(index=index).permit() for index in range(2)]
    other = held.partition("other").permit()
    if resource[0] == BROKER_RESOURCE:
        held.config = held.config.with_dynamic({"message.max.bytes": "777"}, {})
    held.apply(ConfigRecord(*resource, "max.message.bytes", "777"))
    assert [held.partition(index=index).rules.max_batch_bytes for index in range(2)] == [777, 777]
    assert [permit.partition for permit in permits] == [None, None]
    assert (other.partition is None) == (resource[0] == BROKER_RESOURCE)


def _fails(held: Held, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Make partition 1 fail to open."""
    create = held.logs.get_or_create

    def get_or_create(topic_partition: Any, *rest: Any) -> Any:
        if topic_partition.partition == 1:
            raise error
        return create(topic_partition, *rest)

    monkeypatch.setattr(held.logs, "get_or_create", get_or_create)


def test_a_partition_without_a_disk_does_not_stop_the_others(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fails(held, monkeypatch, OSError(errno.EIO, "broken"))
    held.create("topic", 3)
    assert [partition.topic_partition.partition for partition in held.replicas.all()] == [0, 2]
    assert code_of(held, index=1) == ErrorCode.KAFKA_STORAGE_ERROR


def test_after_a_defect_the_others_have_the_change_and_it_is_tried_again(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        _fails(held, patched, ZeroDivisionError())
        with pytest.raises(PartitionsFailed, match=r"1 partition\(s\)"):
            held.create("topic", 3)
    assert code_of(held, index=1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert held.replicas.leader("topic", 2)
    held.replicas.follow(held.image, held.image.difference(MetadataImage()))
    assert held.replicas.leader("topic", 1)


def test_a_partition_that_cannot_follow_is_not_served_under_its_old_leader(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic_id = held.create("topic")
    permit = held.partition().permit()

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(Partition, "follow", broken)
        with pytest.raises(PartitionsFailed):
            held.apply(PartitionChangeRecord(topic_id, 0, leader=OTHER))
    assert permit.partition is None
    assert code_of(held) == ErrorCode.KAFKA_STORAGE_ERROR


def test_nothing_changed_changes_nothing(held: Held) -> None:
    held.create("topic")
    permit = held.partition().permit()
    held.replicas.follow(held.image, Difference())
    assert permit.partition is held.partition()
