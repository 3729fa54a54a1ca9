"""AddPartitionsToTxn, key 24, versions 0-5: partitions join a transaction before they are written to.

Behaviour: if one partition is refused, none is added; the others say so.
Versions:  up to v3 from clients, one transaction · from v4 from brokers, many, some only to verify."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from barnabas.broker.call import Call
from barnabas.broker.portions import drained, drained_items
from barnabas.broker.shard_calls import ShardCall, at_once, call_shards
from barnabas.broker.turns import Work
from barnabas.coordination.step import Step
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import INTERNAL_TOPICS, TopicPartition
from barnabas.transactions.batches import (
    FIRST_BATCHED_VERSION,
    response_of,
    result_of,
    transactions_of,
)
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

CodeOf: TypeAlias = Callable[[TopicPartition], ErrorCode]


def add_partitions_to_txn(call: Call, request: AddPartitionsToTxnRequest) -> Work[Any]:
    by_id: dict[str, AddPartitionsToTxnTransaction] = {}
    for transaction in drained(transactions_of(request, call.version)):
        by_id[transaction.transactional_id] = transaction
        yield
    calls = _shard_calls(call, list(by_id.values()))
    by_id.clear()
    return (yield from call_shards(calls, at_once(lambda results: response_of(results, call.version))))


def _shard_calls(call: Call, transactions: list[AddPartitionsToTxnTransaction]) -> Iterator[ShardCall | None]:
    for transaction in drained(transactions):
        yield (yield from _shard_call(call, transaction))


def _shard_call(call: Call, transaction: AddPartitionsToTxnTransaction) -> Work[ShardCall]:
    refused = yield from _refused(call, transaction)
    if not refused:
        return ShardCall(
            lambda: _shard(call, transaction),
            lambda machine, waiter, now_ms: machine.add_partitions(transaction, call.version, now_ms),
            lambda code: result_of(transaction, lambda partition: code),
        )
    # Whether the coordinator is here is said first, as for a request that it takes.
    try:
        _shard(call, transaction)
        code_of: CodeOf = lambda place: refused.get(place, ErrorCode.OPERATION_NOT_ATTEMPTED)  # noqa: E731
    except KafkaError as error:
        code = error.code
        code_of = lambda place: code  # noqa: E731
    result = yield from _result_in_turns(transaction, code_of)
    return ShardCall(
        lambda: _shard(call, transaction),
        lambda machine, waiter, now_ms: Step(result),
        lambda code: result,
    )


def _refused(call: Call, transaction: AddPartitionsToTxnTransaction) -> Work[dict[TopicPartition, ErrorCode]]:
    """Partitions that cannot be added, whatever the transaction: absent, or for coordinators only.

    Topics and partitions that are repeated become one, on the way."""
    refused = {}
    topics: dict[str, dict[int, None]] = {}
    for topic in drained(transaction.topics):
        topics.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions))
        yield
    for name, indexes in topics.items():
        is_internal = call.version < FIRST_BATCHED_VERSION and name in INTERNAL_TOPICS
        for index in indexes:
            if is_internal:
                refused[TopicPartition(name, index)] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif call.broker.image.partition(name, index) is None:
                refused[TopicPartition(name, index)] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            yield
        yield
    transaction.topics = []
    for name, indexes in drained_items(topics):
        transaction.topics.append(AddPartitionsToTxnTopic(name=name, partitions=list(indexes)))
        yield
    return refused


def _result_in_turns(
    transaction: AddPartitionsToTxnTransaction, code_of: CodeOf
) -> Work[AddPartitionsToTxnResult]:
    result = AddPartitionsToTxnResult(transactional_id=transaction.transactional_id)
    for topic in drained(transaction.topics):
        answer = AddPartitionsToTxnTopicResult(name=topic.name)
        for index in topic.partitions:
            code = code_of(TopicPartition(topic.name, index))
            answer.results_by_partition.append(
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
            )
            yield
        result.topic_results.append(answer)
        yield
    return result


def _shard(call: Call, transaction: AddPartitionsToTxnTransaction) -> Any:
    return call.broker.transactions.shard_of(transaction.transactional_id)
