"""AlterPartition, key 56, versions 2-3: a leader proposes a new in-sync set to the controller.

Behaviour: only brokers send it, with their current broker epoch; an earlier start of a broker is
STALE_BROKER_EPOCH. Each partition has an answer of its own: its new state, or why the proposal is refused
(metadata/isr_changes.py). The answer comes when the change is durable.
Versions:  v2 topic ids · v3 the broker epoch of each proposed member."""

from __future__ import annotations

import asyncio
from itertools import islice

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.isr_changes import ANY_EPOCH, IsrProposal
from barnabas.metadata.parts import PartitionImage
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)

BROKER_EPOCHS_VERSION_MIN = 3
# Proposals that are decided and written at once, whatever their topics.
PARTITIONS_PER_CHANGE = 500


async def alter_partition(call: Call, request: AlterPartitionRequest) -> AlterPartitionResponse:
    sender = request.broker_id, request.broker_epoch
    proposals = (
        _proposal(topic.topic_id, partition, call.version)
        for topic in request.topics
        for partition in topic.partitions
    )
    topics: dict[bytes, ResponseTopicData] = {}
    try:
        # Check the sender first: the request of an unknown broker may be long.
        await call.broker.controller.alter_partitions(*sender, [])
        while portion := list(islice(proposals, PARTITIONS_PER_CHANGE)):
            results = await call.broker.controller.alter_partitions(*sender, portion)
            for proposal, result in zip(portion, results, strict=True):
                topic = topics.setdefault(proposal.topic_id, ResponseTopicData(topic_id=proposal.topic_id))
                topic.partitions.append(_answer(proposal, result))
            await asyncio.sleep(0)
    except KafkaError as error:
        return AlterPartitionResponse(error_code=error.code)
    return AlterPartitionResponse(topics=list(topics.values()))


def _proposal(topic_id: bytes, partition: RequestPartitionData, version: int) -> IsrProposal:
    if version >= BROKER_EPOCHS_VERSION_MIN:
        isr = tuple((member.broker_id, member.broker_epoch) for member in partition.new_isr_with_epochs)
    else:
        isr = tuple((member, ANY_EPOCH) for member in partition.new_isr)
    return IsrProposal(
        topic_id,
        partition.partition_index,
        partition.leader_epoch,
        partition.partition_epoch,
        isr,
        partition.leader_recovery_state,
    )


def _answer(proposal: IsrProposal, result: PartitionImage | ErrorCode) -> ResponsePartitionData:
    if isinstance(result, ErrorCode):
        return ResponsePartitionData(partition_index=proposal.index, error_code=result)
    return ResponsePartitionData(
        partition_index=proposal.index,
        leader_id=result.leader,
        leader_epoch=result.leader_epoch,
        isr=list(result.isr),
        leader_recovery_state=result.leader_recovery_state,
        partition_epoch=result.partition_epoch,
    )
