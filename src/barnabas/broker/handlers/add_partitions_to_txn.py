"""AddPartitionsToTxn, key 24, versions 0-5: partitions join a transaction before they are written to.

Behaviour: if one partition is refused, none is added; the others say so.
Versions:  up to v3 from clients, one transaction · from v4 from brokers, many, some only to verify."""

from __future__ import annotations

from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.later import Later
from barnabas.broker.shard_calls import ShardCall, call_shards
from barnabas.coordination.step import Step
from barnabas.errors import ErrorCode
from barnabas.ids import INTERNAL_TOPICS, TopicPartition
from barnabas.transactions.batches import (
    FIRST_BATCHED_VERSION,
    partitions_of,
    response_of,
    result_of,
    transactions_of,
)
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)


def add_partitions_to_txn(call: Call, request: AddPartitionsToTxnRequest) -> Later:
    return call_shards(
        [_shard_call(call, transaction) for transaction in transactions_of(request, call.version)],
        lambda results: response_of(results, call.version),
    )


def _shard_call(call: Call, transaction: AddPartitionsToTxnTransaction) -> ShardCall:
    def decide(machine: Any, waiter: Any, now_ms: int) -> Any:
        return machine.add_partitions(transaction, call.version, now_ms)

    def refuse(code: ErrorCode) -> Any:
        return result_of(transaction, lambda partition: code)

    refused = _refused(call, transaction)
    if refused:

        def code_of(place: TopicPartition) -> ErrorCode:
            return refused.get(place, ErrorCode.OPERATION_NOT_ATTEMPTED)

        def decide_refused(machine: Any, waiter: Any, now_ms: int) -> Any:
            return Step(result_of(transaction, code_of))

        return ShardCall(lambda: _shard(call, transaction), decide_refused, refuse)
    return ShardCall(lambda: _shard(call, transaction), decide, refuse)


def _refused(call: Call, transaction: AddPartitionsToTxnTransaction) -> dict[TopicPartition, ErrorCode]:
    """Partitions that cannot be added, whatever the transaction: absent, or for coordinators only."""
    refused = {}
    for place in partitions_of(transaction):
        if call.version < FIRST_BATCHED_VERSION and place.topic in INTERNAL_TOPICS:
            refused[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif call.broker.image.partition(*place) is None:
            refused[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def _shard(call: Call, transaction: AddPartitionsToTxnTransaction) -> Any:
    return call.broker.transactions.shard_of(transaction.transactional_id)
