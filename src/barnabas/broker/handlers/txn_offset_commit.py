"""TxnOffsetCommit, key 28, versions 0-5: offsets that count once their transaction commits.

Behaviour: partitions that do not exist are refused one by one, the rest is committed.
Versions:  v3 the group's member is checked · v4 may answer TRANSACTION_ABORTABLE · v5 the offsets join the
transaction by themselves (KIP-890); before, AddOffsetsToTxn must have come first."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.shard_calls import call_shard
from barnabas.broker.transaction_verification import ensure_in_transaction
from barnabas.coordination.step import Producer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.offset_requests import refused_commit_in_transaction
from barnabas.ids import OFFSETS_TOPIC, TopicPartition
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

ABORTABLE_VERSION_MIN = 4
IMPLICIT_VERSION_MIN = 5
# A client of a coordinator knows nothing of partitions: what is said of one is said of the coordinator.
KNOWN_TO_CLIENTS = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


async def txn_offset_commit(call: Call, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    strangers = _without_strangers(call, request)
    if strangers and not request.topics:
        return TxnOffsetCommitResponse(topics=strangers)
    response = await _commit(call, request)
    response.topics += strangers
    return response


def _without_strangers(call: Call, request: TxnOffsetCommitRequest) -> list[TxnOffsetCommitResponseTopic]:
    """Takes what does not exist out of the request; the answers for it."""
    strangers: list[TxnOffsetCommitResponseTopic] = []
    for topic in request.topics:
        found = call.broker.image.topic(topic.name)
        count = 0 if found is None else len(found.partitions)
        absent = [part for part in topic.partitions if not 0 <= part.partition_index < count]
        if absent:
            strangers.append(_unknown(topic.name, [part.partition_index for part in absent]))
            topic.partitions = [part for part in topic.partitions if 0 <= part.partition_index < count]
    request.topics = [topic for topic in request.topics if topic.partitions]
    return strangers


def _unknown(name: str, numbers: list[int]) -> TxnOffsetCommitResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return TxnOffsetCommitResponseTopic(
        name=name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=number, error_code=code) for number in numbers
        ],
    )


async def _commit(call: Call, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    try:
        await call.broker.groups.ensure_topic()
        place = TopicPartition(OFFSETS_TOPIC, call.broker.groups.partition_of(request.group_id))
        producer = Producer(request.producer_id, request.producer_epoch)
        adds = call.version >= IMPLICIT_VERSION_MIN
        ensure_in_transaction(call.broker, request.transactional_id, producer, place, adds=adds)
    except KafkaError as error:
        return refused_commit_in_transaction(request, _known_to_clients(error.code, call.version))
    response: TxnOffsetCommitResponse = await call_shard(
        lambda: call.broker.groups.shard_of(request.group_id),
        lambda machine, waiter, now_ms: machine.txn_offset_commit(request, call.version, now_ms),
        lambda code: refused_commit_in_transaction(request, code),
    )
    return response


def _known_to_clients(code: ErrorCode, version: int) -> ErrorCode:
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_VERSION_MIN:
        return ErrorCode.INVALID_TXN_STATE
    return KNOWN_TO_CLIENTS.get(code, code)
