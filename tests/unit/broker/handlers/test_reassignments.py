"""ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments with several brokers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.errors import ErrorCode
from barnabas.ids import random_uuid
from barnabas.metadata.brokers import Heartbeat
from barnabas.metadata.isr_changes import ANY_EPOCH, IsrProposal
from barnabas.metadata.records import Listener
from barnabas.metadata.store import BrokerRegistration
from barnabas.metadata.topics import NewTopic
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

LISTENERS = (Listener("PLAINTEXT", "far.example", 9093),)
PREFERRED, UNCLEAN = 0, 1


def start_broker(stage: Any, number: int) -> None:
    registration = BrokerRegistration(number, random_uuid(), LISTENERS)
    epoch = stage.run(stage.controller.register_broker(registration))
    stage.run(stage.controller.heartbeat(Heartbeat(number, epoch, epoch)))


def create(stage: Any, *replicas: int) -> None:
    stage.run(stage.controller.create_topics([NewTopic("a", assignments={0: list(replicas)})]))


def catch_up(stage: Any, *isr: int) -> Any:
    """The leader proposes this ISR."""
    topic = stage.image.topics["a"]
    partition = topic.partitions[0]
    members = tuple((member, ANY_EPOCH) for member in isr)
    proposal = IsrProposal(topic.id, 0, partition.leader_epoch, partition.partition_epoch, members)
    leader = stage.image.brokers[partition.leader]
    return stage.run(stage.controller.alter_partitions(leader.id, leader.epoch, [proposal]))[0]


def move(stage: Any, replicas: Sequence[int] | None, **fields: Any) -> tuple[int, str | None]:
    partition = ReassignablePartition(
        partition_index=0, replicas=None if replicas is None else list(replicas)
    )
    topic = ReassignableTopic(name="a", partitions=[partition])
    response = stage.ask(AlterPartitionReassignmentsRequest(topics=[topic], **fields), 1)
    assert response.error_code == 0
    result = response.responses[0].partitions[0]
    return result.error_code, result.error_message


def moving(stage: Any, topics: list[ListPartitionReassignmentsTopics] | None = None) -> list[Any]:
    response = stage.ask(ListPartitionReassignmentsRequest(topics=topics), 0)
    return [
        (topic.name, part.partition_index, part.replicas, part.adding_replicas, part.removing_replicas)
        for topic in response.topics
        for part in topic.partitions
    ]


def test_a_partition_moves_when_its_new_replica_is_in_sync(stage: Any) -> None:
    start_broker(stage, 2)
    create(stage, 1)
    assert move(stage, [2]) == (0, None)
    assert moving(stage) == [("a", 0, [2, 1], [2], [1])]
    named = [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 0, 7]) for name in ("a", "b")]
    assert len(moving(stage, named)) == 1
    assert catch_up(stage, 1, 2) is ErrorCode.NEW_LEADER_ELECTED
    partition = stage.image.partition("a", 0)
    assert (partition.replicas, partition.isr, partition.leader) == ((2,), (2,), 2)
    assert moving(stage) == []


def test_a_move_is_cancelled(stage: Any) -> None:
    start_broker(stage, 2)
    create(stage, 1)
    assert move(stage, None)[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    move(stage, [2])
    assert move(stage, None) == (0, None)
    partition = stage.image.partition("a", 0)
    assert (partition.replicas, partition.isr, partition.leader) == ((1,), (1,), 1)


def test_refused_moves(stage: Any) -> None:
    start_broker(stage, 2)
    create(stage, 1)
    unknown = "The manual partition assignment includes broker 9, but no such broker is registered."
    assert move(stage, [1, 9]) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, unknown)
    assert move(stage, [1, 2], allow_replication_factor_change=False) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "The replication factor is changed from 1 to 2",
    )
    assert moving(stage) == []


def elect(stage: Any, election: int, partitions: list[TopicPartitions] | None) -> list[Any]:
    response = stage.ask(ElectLeadersRequest(election_type=election, topic_partitions=partitions), 2)
    assert response.error_code == 0
    return [
        (topic.topic, result.partition_id, result.error_code)
        for topic in response.replica_election_results
        for result in topic.partition_result
    ]


def test_the_preferred_leader_leads_again(stage: Any) -> None:
    start_broker(stage, 2)
    create(stage, 2, 1)
    stage.run(stage.controller.fence_broker(2))
    named = [TopicPartitions(topic="a", partitions=[0])]
    assert elect(stage, PREFERRED, named) == [("a", 0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]
    start_broker(stage, 2)
    assert catch_up(stage, 1, 2).isr == (1, 2)
    assert elect(stage, PREFERRED, None) == [("a", 0, ErrorCode.NONE)]
    assert stage.image.partition("a", 0).leader == 2
    assert elect(stage, PREFERRED, None) == []
    assert elect(stage, PREFERRED, named) == [("a", 0, ErrorCode.ELECTION_NOT_NEEDED)]


def test_an_unclean_election_when_asked_for(stage: Any) -> None:
    start_broker(stage, 2)
    create(stage, 2, 1)
    catch_up(stage, 2)
    stage.run(stage.controller.fence_broker(2))
    assert not stage.image.partition("a", 0).has_leader
    assert elect(stage, UNCLEAN, None) == [("a", 0, ErrorCode.NONE)]
    partition = stage.image.partition("a", 0)
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 1)
    assert stage.controller.elections.unclean == 1
