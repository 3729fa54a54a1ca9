"""Before a partition takes a transactional batch, it must be in the producer's open transaction.

Otherwise a batch that arrives after the end of its transaction would begin another one that nobody ends
(KIP-890). The coordinator is called and the batch appended in one turn of the loop, so nothing can happen in
between; that holds while the coordinator and the partition are on one broker."""

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

# The version of AddPartitionsToTxn between brokers.
BROKER_VERSION = 5


def ensure_in_transaction(
    broker: Broker, transactional_id: str | None, producer: Producer, place: TopicPartition, *, adds: bool
) -> None:
    """Raise KafkaError unless the partition `place` is in the producer's open transaction.

    With `adds`, a partition that is not in it is added. A partition that already has records of the open
    transaction needs no coordinator."""
    partition = broker.replicas.leader(*place)
    entry = partition.log.producers.entries.get(producer.id)
    if entry is not None and entry.transaction_first_offset >= 0 and entry.epoch == producer.epoch:
        return
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional batch needs a transactional id")
    if not broker.config["transaction.partition.verification.enable"] and not adds:
        return
    request = AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        verify_only=not adds,
        topics=[AddPartitionsToTxnTopic(name=place.topic, partitions=[place.partition])],
    )
    code = _call_coordinator(broker, request)
    if code != ErrorCode.NONE:
        raise KafkaError(code)


def _call_coordinator(broker: Broker, request: AddPartitionsToTxnTransaction) -> ErrorCode:
    codes: list[ErrorCode] = []

    def take(result: Any) -> None:
        if isinstance(result, ErrorCode):
            codes.append(result)
        else:
            partition = result.topic_results[0].results_by_partition[0]
            codes.append(error_of(partition.partition_error_code))

    reply = call_shard(
        lambda: broker.transactions.shard_of(request.transactional_id),
        lambda machine, waiter, now_ms: machine.add_partitions(request, BROKER_VERSION, now_ms),
        lambda code: code,
    )
    reply.then(take)
    # There is no answer yet when replicas are behind. The client has to try again.
    return codes[0] if codes else ErrorCode.CONCURRENT_TRANSACTIONS
