"""Requests that only brokers send: AlterPartition, BrokerHeartbeat and AllocateProducerIds."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.ids import random_uuid
from barnabas.metadata.records import Listener
from barnabas.metadata.store import BrokerRegistration
from barnabas.metadata.topics import NewTopic
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest

LISTENERS = (Listener("PLAINTEXT", "far.example", 9093),)


def second_broker(stage: Any) -> int:
    """Broker 2, unfenced; its epoch."""
    epoch: int = stage.run(stage.controller.register_broker(BrokerRegistration(2, random_uuid(), LISTENERS)))
    request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=epoch, current_metadata_offset=epoch)
    answer = stage.ask(request, 2)
    assert (answer.error_code, answer.is_caught_up, answer.is_fenced) == (0, True, False)
    return epoch


def alter(stage: Any, isr: list[tuple[int, int]], version: int = 3, **changes: Any) -> Any:
    topic = stage.image.topics["a"]
    partition = topic.partitions[0]
    data = RequestPartitionData(
        partition_index=0,
        leader_epoch=changes.get("leader_epoch", partition.leader_epoch),
        partition_epoch=changes.get("partition_epoch", partition.partition_epoch),
    )
    if version >= 3:
        data.new_isr_with_epochs = [
            BrokerState(broker_id=member, broker_epoch=epoch) for member, epoch in isr
        ]
    else:
        data.new_isr = [member for member, _ in isr]
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=changes.get("broker_epoch", stage.image.brokers[1].epoch),
        topics=[RequestTopicData(topic_id=changes.get("topic_id", topic.id), partitions=[data])],
    )
    response = stage.ask(request, version)
    if response.error_code:
        return response.error_code
    return response.topics[0].partitions[0]


@pytest.mark.parametrize("version", [2, 3])
def test_a_leader_changes_its_in_sync_set(stage: Any, version: int) -> None:
    epoch = second_broker(stage)
    stage.run(stage.controller.create_topics([NewTopic("a", assignments={0: [1, 2]})]))
    own = stage.image.brokers[1].epoch
    answer = alter(stage, [(1, own)], version)
    assert (answer.error_code, answer.leader_id, answer.isr, answer.partition_epoch) == (0, 1, [1], 1)
    assert stage.image.partition("a", 0).isr == (1,)
    answer = alter(stage, [(1, own), (2, epoch)], version)
    assert (answer.isr, answer.leader_epoch, answer.partition_epoch) == ([1, 2], 0, 2)


def test_proposals_for_many_topics_are_one_change(stage: Any) -> None:
    second_broker(stage)
    names = [f"topic-{number}" for number in range(20)]
    stage.run(stage.controller.create_topics([NewTopic(name, assignments={0: [1, 2]}) for name in names]))
    own = stage.image.brokers[1].epoch
    alone = [BrokerState(broker_id=1, broker_epoch=own)]
    changes = []
    stop = stage.node.listen(lambda old, new, difference: changes.append(difference))
    topics = [
        RequestTopicData(
            topic_id=stage.image.topics[name].id,
            partitions=[RequestPartitionData(new_isr_with_epochs=alone)],
        )
        for name in names
    ]
    response = stage.ask(AlterPartitionRequest(broker_id=1, broker_epoch=own, topics=topics), 3)
    stop()
    assert [topic.topic_id for topic in response.topics] == [topic.topic_id for topic in topics]
    assert all(topic.partitions[0].isr == [1] for topic in response.topics)
    assert [len(change.partitions_changed) for change in changes] == [20]


def test_refused_in_sync_sets(stage: Any) -> None:
    epoch = second_broker(stage)
    stage.run(stage.controller.create_topics([NewTopic("a", assignments={0: [1, 2]})]))
    own = stage.image.brokers[1].epoch
    before = stage.image
    assert alter(stage, [(1, own), (2, epoch - 1)]).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert alter(stage, [(1, own)], leader_epoch=1).error_code == ErrorCode.NOT_CONTROLLER
    assert alter(stage, [(1, own)], topic_id=bytes(15) + b"\1").error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert alter(stage, [(1, own)], broker_epoch=own + 1) == ErrorCode.STALE_BROKER_EPOCH
    assert stage.image is before


def test_a_broker_shuts_down_after_its_leaderships_have_moved(stage: Any) -> None:
    epoch = second_broker(stage)
    stage.run(stage.controller.create_topics([NewTopic("a", assignments={0: [2, 1]})]))
    request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=epoch, want_shut_down=True)
    assert not stage.ask(request, 1).should_shut_down
    assert stage.image.partition("a", 0).leader == 1
    assert stage.ask(request, 1).should_shut_down
    stale = BrokerHeartbeatRequest(broker_id=2, broker_epoch=epoch - 1)
    assert stage.ask(stale, 1).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_blocks_of_producer_ids(stage: Any) -> None:
    epoch = stage.image.brokers[1].epoch
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
    first, second = stage.ask(request, 0), stage.ask(request, 0)
    assert first.producer_id_start + first.producer_id_len == second.producer_id_start
    refused = stage.ask(AllocateProducerIdsRequest(broker_id=9, broker_epoch=epoch), 0)
    assert refused.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_clients_do_not_see_them(stage: Any) -> None:
    listed = {api.api_key for api in stage.ask(ApiVersionsRequest(), 0).api_keys}
    assert not listed & {56, 63, 67}
    assert 64 in listed
