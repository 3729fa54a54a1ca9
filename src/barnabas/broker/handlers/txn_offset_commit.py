"""TxnOffsetCommit, key 28, versions 0-5: offsets that are valid when their transaction commits.

Behaviour: partitions that do not exist are refused one by one, the rest is committed.
Versions:  v3 the group's member is checked · v4 may answer TRANSACTION_ABORTABLE · v5 adds the offsets to the
transaction (KIP-890); older clients must send AddOffsetsToTxn first."""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.portions import changed, joined, known_and_unknown, once_each, topics_in_portions
from barnabas.broker.shard_calls import call_shard
from barnabas.broker.transaction_verification import ensure_in_transaction
from barnabas.broker.turns import Work, run_in_turns
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
# A client of a coordinator does not expect the errors of a partition; it gets those of a coordinator.
KNOWN_TO_CLIENTS = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


def txn_offset_commit(call: Call, request: TxnOffsetCommitRequest) -> Work[Any]:
    topics = yield from once_each(request.topics, lambda topic: topic.name)
    request.topics, unknown = yield from known_and_unknown(
        call.broker.image, topics, lambda name: TxnOffsetCommitResponseTopic(name=name), _refused
    )
    if unknown and not request.topics:
        return TxnOffsetCommitResponse(topics=unknown)
    return _commit_in_portions(call, request, unknown)


async def _commit_in_portions(
    call: Call, request: TxnOffsetCommitRequest, unknown: list[TxnOffsetCommitResponseTopic]
) -> TxnOffsetCommitResponse:
    response = TxnOffsetCommitResponse()
    for portion in topics_in_portions(request.topics, "partitions"):
        response.topics += (await _commit(call, changed(request, topics=portion))).topics
        await asyncio.sleep(0)
    answered = chain(response.topics, unknown)
    response.topics = await run_in_turns(joined(answered, lambda topic: topic.name))
    return response


def _refused(index: int, code: ErrorCode) -> TxnOffsetCommitResponsePartition:
    return TxnOffsetCommitResponsePartition(partition_index=index, error_code=code)


async def _commit(call: Call, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    try:
        await call.broker.groups.ensure_topic()
        place = TopicPartition(OFFSETS_TOPIC, call.broker.groups.partition_of(request.group_id))
        producer = Producer(request.producer_id, request.producer_epoch)
        adds = call.version >= IMPLICIT_VERSION_MIN
        await run_in_turns(
            ensure_in_transaction(call.broker, request.transactional_id, producer, place, adds=adds)
        )
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
