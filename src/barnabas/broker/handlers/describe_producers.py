"""DescribeProducers, key 61, version 0: who writes to a partition, with sequences and open transactions.

Behaviour: any replica answers, not only the leader, so that replicas can be compared."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import topic_name_problem
from barnabas.log.log import Log
from barnabas.log.producers import ProducerEntry
from barnabas.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def describe_producers(call: Call, request: DescribeProducersRequest) -> Work[DescribeProducersResponse]:
    requested: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        requested.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
        yield
    response = DescribeProducersResponse()
    for name, indexes in requested.items():
        result = TopicResponse(name=name)
        for index in indexes:
            result.partitions.append((yield from _partition(call, name, index)))
            yield
        response.topics.append(result)
        yield
    return response


def _partition(call: Call, topic: str, index: int) -> Work[PartitionResponse]:
    answer = PartitionResponse(partition_index=index, error_message=None)
    try:
        log = _log(call, topic, index)
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, error.message
        return answer
    for entry in list(log.producers.entries.values()):
        answer.active_producers.append(_producer(entry))
        yield
    return answer


def _log(call: Call, topic: str, index: int) -> Log:
    problem = topic_name_problem(topic)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    partition = call.broker.replicas.get(topic, index)
    if partition is None:
        # Raises the reason: no such partition, not on this broker, or its directory is offline.
        partition = call.broker.replicas.leader(topic, index)
    if partition.log.offline:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    return partition.log


def _producer(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.transaction_first_offset,
    )
