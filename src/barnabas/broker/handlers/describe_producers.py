"""DescribeProducers, key 61, version 0: who writes to a partition, with sequences and open transactions.

Behaviour: any replica answers, not only the leader, so that replicas can be compared."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import topic_name_problem
from barnabas.log.log import Log
from barnabas.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def describe_producers(call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_partition(call, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _partition(call: Call, topic: str, index: int) -> PartitionResponse:
    try:
        return PartitionResponse(partition_index=index, active_producers=_producers(_log(call, topic, index)))
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)


def _log(call: Call, topic: str, index: int) -> Log:
    problem = topic_name_problem(topic)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    partition = call.broker.replicas.get(topic, index)
    if partition is None:
        # Raises what is the matter: no such partition, not here, or its directory is gone.
        partition = call.broker.replicas.leader(topic, index)
    if partition.log.offline:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    return partition.log


def _producers(log: Log) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.transaction_first_offset,
        )
        for entry in log.producers.entries.values()
    ]
