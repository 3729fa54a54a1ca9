"""CreatePartitions, key 37, versions 0-3: more partitions for topics, each with an answer of its own.

Behaviour: the count is the new total; replicas may be assigned to the added partitions. A topic named twice
is refused, with one answer. With validate_only nothing is created."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.deadline import within
from barnabas.broker.turns import Work, run_in_turns
from barnabas.errors import KafkaError
from barnabas.metadata.topics import NewPartitions, PartitionsResults, absent_topic, repeated_topic
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def create_partitions(call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    results: PartitionsResults = {}
    absent: list[str] = []
    wanted = await run_in_turns(_wanted(call, request, results, absent))
    try:
        work = call.broker.controller.create_partitions(wanted, validate_only=request.validate_only)
        results |= await within(request.timeout_ms, call.broker.replicas.settled_after(work))
    except KafkaError as error:
        results |= {topic.name: error for topic in wanted}
    return await run_in_turns(_response(results, absent))


def _wanted(
    call: Call, request: CreatePartitionsRequest, results: PartitionsResults, absent: list[str]
) -> Work[list[NewPartitions]]:
    """What the controller is to create; results and absent topics that it need not see are added."""
    topics = call.broker.image.topics
    by_name: dict[str, CreatePartitionsTopic | None] = {}
    for topic in request.topics:
        # None where a name is repeated.
        by_name[topic.name] = None if topic.name in by_name else topic
        yield
    wanted = []
    for name, once in by_name.items():
        if once is None:
            results[name] = repeated_topic(name)
        elif name not in topics:
            absent.append(name)
        else:
            wanted.append(_new_partitions(once))
        yield
    return wanted


def _response(results: PartitionsResults, absent: list[str]) -> Work[CreatePartitionsResponse]:
    response = CreatePartitionsResponse()
    for name in absent:
        response.results.append(_result(name, absent_topic(name)))
        yield
    for name, result in results.items():
        response.results.append(_result(name, result))
        yield
    return response


def _new_partitions(topic: CreatePartitionsTopic) -> NewPartitions:
    if topic.assignments is None:
        return NewPartitions(topic.name, topic.count)
    return NewPartitions(topic.name, topic.count, [assigned.broker_ids for assigned in topic.assignments])


def _result(name: str, result: int | KafkaError) -> CreatePartitionsTopicResult:
    if isinstance(result, KafkaError):
        return CreatePartitionsTopicResult(name=name, error_code=result.code, error_message=result.message)
    return CreatePartitionsTopicResult(name=name)
