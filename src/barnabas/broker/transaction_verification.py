"""A partition joins a transaction, or is verified to have joined it, before it takes a transactional batch.

Without it, a batch that was delayed until after the end of its transaction would begin another one that
nobody ends (KIP-890). The coordinator is asked and the batch appended in one turn of the loop, so nothing can
come between; that holds while coordinator and partition are on one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.shard_calls import call_shard
from barnabas.coordination.step import Producer
from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.ids import TopicPartition
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

# The version in which brokers ask coordinators.
BROKER_VERSION = 5


def ensure_in_transaction(
    broker: Broker, transactional_id: str | None, producer: Producer, place: TopicPartition, *, joins: bool
) -> None:
    """Make sure that `place` is in the producer's open transaction; add it if the client's version `joins`.

    Raises KafkaError. A partition in which the transaction is open already needs no coordinator."""
    partition = broker.replicas.leader(*place)
    entry = partition.log.producers.entries.get(producer.id)
    if entry is not None and entry.transaction_first_offset >= 0 and entry.epoch == producer.epoch:
        return
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional batch came without a transactional id")
    if not broker.config["transaction.partition.verification.enable"] and not joins:
        return
    question = AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        verify_only=not joins,
        topics=[AddPartitionsToTxnTopic(name=place.topic, partitions=[place.partition])],
    )
    code = _answer(broker, question)
    if code != ErrorCode.NONE:
        raise KafkaError(code)


def _answer(broker: Broker, question: AddPartitionsToTxnTransaction) -> ErrorCode:
    codes: list[ErrorCode] = []

    def take(result: Any) -> None:
        if isinstance(result, ErrorCode):
            codes.append(result)
        else:
            partition = result.topic_results[0].results_by_partition[0]
            codes.append(error_of(partition.partition_error_code))

    asked = call_shard(
        lambda: broker.transactions.shard_of(question.transactional_id),
        lambda machine, waiter, now_ms: machine.add_partitions(question, BROKER_VERSION, now_ms),
        lambda code: code,
    )
    asked.then(take)
    # Not committed yet means that replicas are behind; the client is to come again.
    return codes[0] if codes else ErrorCode.CONCURRENT_TRANSACTIONS
