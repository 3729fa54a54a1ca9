"""Before a partition takes a transactional batch, it must be in the producer's open transaction.

Otherwise a batch that arrives after the end of its transaction would begin another one that nobody ends
(KIP-890). The coordinator knows; it may be another broker, and its answer may wait for replicas. A marker
that is appended meanwhile makes the answer worthless: the check holds a Verification, which such a marker
ends. From the end of the check to the append nothing else may run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.shard_calls import call_shard
from barnabas.broker.turns import Work
from barnabas.coordination.step import Producer
from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.ids import TopicPartition
from barnabas.log.producers import Verification
from barnabas.replication.partition import Partition
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

ADD_PARTITIONS_TO_TXN_KEY = 24
# The version of AddPartitionsToTxn between brokers.
BROKER_VERSION = 5
COORDINATOR_SECONDS = 30.0


def ensure_in_transaction(
    broker: Broker, transactional_id: str | None, producer: Producer, place: TopicPartition, *, adds: bool
) -> Work[None]:
    """Raise KafkaError unless the partition `place` is in the producer's open transaction.

    With `adds`, a partition that is not in it is added. A partition that already has records of the open
    transaction needs no coordinator. The caller appends right after this, without a pause."""
    partition = broker.replicas.leader(*place)
    if _has_open_transaction(partition, producer):
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
    leader_epoch = partition.leader_epoch
    with Verification(partition.log.producers, producer.id) as verification:
        code = yield from _ask_coordinator(broker, request)
        if code != ErrorCode.NONE:
            raise KafkaError(code)
        if broker.replicas.leader(*place) is not partition or partition.leader_epoch != leader_epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if not verification.is_valid and not _has_open_transaction(partition, producer):
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"the transaction of producer {producer.id} ended on {place} while it was verified",
            )


def _has_open_transaction(partition: Partition, producer: Producer) -> bool:
    entry = partition.log.producers.entries.get(producer.id)
    return entry is not None and entry.transaction_first_offset >= 0 and entry.epoch == producer.epoch


def _ask_coordinator(broker: Broker, request: AddPartitionsToTxnTransaction) -> Work[ErrorCode]:
    coordinator_id = broker.transactions.leader_of(request.transactional_id)
    if coordinator_id != broker.id:
        code: ErrorCode = yield _ask_peer(broker, coordinator_id, request)
        return code
    reply = call_shard(
        lambda: broker.transactions.shard_of(request.transactional_id),
        lambda machine, waiter, now_ms: machine.add_partitions(request, BROKER_VERSION, now_ms),
        lambda code: code,
    )
    # The reply comes later if replicas of the coordinator's partition are behind.
    return _code_of(reply.answer if reply.is_resolved else (yield reply))


async def _ask_peer(broker: Broker, coordinator_id: int, request: AddPartitionsToTxnTransaction) -> ErrorCode:
    try:
        response = await broker.peers.send(
            coordinator_id,
            ADD_PARTITIONS_TO_TXN_KEY,
            AddPartitionsToTxnRequest(transactions=[request]),
            purpose="transactions",
            within_seconds=COORDINATOR_SECONDS,
        )
    except KafkaError:
        # Not reachable, or gone: the producer retries, and finds the next coordinator.
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if response.error_code:
        return error_of(response.error_code)
    return _code_of(response.results_by_transaction[0])


def _code_of(result: Any) -> ErrorCode:
    if isinstance(result, ErrorCode):
        return result
    return error_of(result.topic_results[0].results_by_partition[0].partition_error_code)
