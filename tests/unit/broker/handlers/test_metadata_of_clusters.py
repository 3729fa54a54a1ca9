"""What Metadata, DescribeTopicPartitions and FindCoordinator say about several brokers."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.ids import random_uuid
from barnabas.metadata.records import BrokerRecord, Listener, PartitionRecord, TopicRecord
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

CLIENTS = Listener("PLAINTEXT", "far.example", 9093)
INNER = Listener("INNER", "10.0.0.2", 9094)


def broker(number: int, *listeners: Listener, fenced: bool = False) -> BrokerRecord:
    return BrokerRecord(number, 100 + number, random_uuid(), listeners, fenced=fenced)


def place(stage: Any, leader: int, replicas: tuple[int, ...] = (2, 3), **more: Any) -> None:
    """Topic "t" with one partition."""
    topic_id = random_uuid()
    partition = PartitionRecord(topic_id, 0, replicas, more.pop("isr", replicas), leader, 5, **more)
    stage.write(TopicRecord("t", topic_id), partition)


def described(stage: Any, version: int) -> Any:
    answer = stage.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), version)
    return answer, answer.topics[0].partitions[0]


@pytest.mark.parametrize("version", [1, 5, 13])
def test_brokers_that_live_and_have_the_listener_are_listed(stage: Any, version: int) -> None:
    stage.write(broker(2, CLIENTS), broker(3, INNER), broker(4, CLIENTS, fenced=True))
    place(stage, leader=2, replicas=(2, 3, 4))
    answer, partition = described(stage, version)
    assert [node.node_id for node in answer.brokers] == [1, 2]
    assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, 2)
    assert (partition.replica_nodes, partition.isr_nodes) == ([2, 3, 4], [2, 3, 4])
    assert partition.offline_replicas == ([3, 4] if version >= 5 else [])


@pytest.mark.parametrize("version", [1, 5, 6, 13])
def test_a_leader_without_the_listener_is_not_named(stage: Any, version: int) -> None:
    stage.write(broker(2, INNER), broker(3, CLIENTS))
    place(stage, leader=2)
    _, partition = described(stage, version)
    error = ErrorCode.LISTENER_NOT_FOUND if version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
    assert (partition.error_code, partition.leader_id) == (error, -1)


@pytest.mark.parametrize("leader", [-1, 2, 9], ids=["none", "fenced", "unknown"])
def test_a_partition_without_a_living_leader_has_none(stage: Any, leader: int) -> None:
    stage.write(broker(2, CLIENTS, fenced=True), broker(3, CLIENTS))
    place(stage, leader=leader)
    _, partition = described(stage, 13)
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert partition.leader_epoch == 5


def test_version_0_leaves_out_replicas_that_cannot_be_reached(stage: Any) -> None:
    stage.write(broker(2, CLIENTS), broker(3, CLIENTS, fenced=True))
    place(stage, leader=2)
    _, partition = described(stage, 0)
    assert (partition.error_code, partition.leader_id) == (ErrorCode.REPLICA_NOT_AVAILABLE, 2)
    assert (partition.replica_nodes, partition.isr_nodes) == ([2], [2])


def test_a_replica_in_a_failed_directory_is_offline(stage: Any) -> None:
    failed, fine = random_uuid(), random_uuid()
    record = BrokerRecord(2, 102, random_uuid(), (CLIENTS,), offline_directories=(failed,))
    stage.write(record, broker(3, CLIENTS))
    place(stage, leader=3, directories=(failed, fine))
    _, partition = described(stage, 13)
    assert partition.offline_replicas == [2]


def test_eligible_leaders_are_described(stage: Any) -> None:
    stage.write(broker(2, CLIENTS), broker(3, INNER))
    place(stage, leader=2, isr=(2,), elr=(3,), last_known_elr=(9,))
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")])
    (partition,) = stage.ask(request, 0).topics[0].partitions
    assert (partition.leader_id, partition.isr_nodes, partition.offline_replicas) == (2, [2], [3])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([3], [9])


@pytest.mark.parametrize("version", [0, 3, 6])
def test_the_coordinator_is_the_leader_that_the_client_can_reach(stage: Any, version: int) -> None:
    stage.run(stage.start_coordinators())
    topic_id = random_uuid()
    stage.write(
        broker(2, CLIENTS),
        broker(3, INNER),
        TopicRecord("__consumer_offsets", topic_id),
        PartitionRecord(topic_id, 0, (2, 3), (2, 3), 2),
    )

    def found() -> Any:
        return stage.ask(FindCoordinatorRequest(coordinator_keys=["group"]), version).coordinators[0]

    coordinator = found()
    assert (coordinator.error_code, coordinator.node_id, coordinator.host) == (0, 2, "far.example")
    stage.write(broker(2, CLIENTS, fenced=True))
    assert (found().error_code, found().node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
