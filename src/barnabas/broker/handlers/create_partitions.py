"""CreatePartitions, key 37, versions 0-3: more partitions for topics, each with an answer of its own.

Behaviour: the count is the wanted total; replicas may be assigned to the added ones. A topic named twice
is refused once. With validate_only nothing is created."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.deadline import within
from barnabas.errors import KafkaError
from barnabas.metadata.topics import NewPartitions, PartitionsResults
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def create_partitions(call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    wanted = [_new_partitions(topic) for topic in request.topics]
    results: PartitionsResults
    try:
        work = call.broker.controller.create_partitions(wanted, validate_only=request.validate_only)
        results = await within(request.timeout_ms, work)
    except KafkaError as error:
        results = {topic.name: error for topic in wanted}
    return CreatePartitionsResponse(results=[_result(name, result) for name, result in results.items()])


def _new_partitions(topic: CreatePartitionsTopic) -> NewPartitions:
    if topic.assignments is None:
        return NewPartitions(topic.name, topic.count)
    return NewPartitions(topic.name, topic.count, [assigned.broker_ids for assigned in topic.assignments])


def _result(name: str, result: int | KafkaError) -> CreatePartitionsTopicResult:
    if isinstance(result, KafkaError):
        return CreatePartitionsTopicResult(name=name, error_code=result.code, error_message=result.message)
    return CreatePartitionsTopicResult(name=name)
