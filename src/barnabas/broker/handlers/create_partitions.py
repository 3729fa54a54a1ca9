"""CreatePartitions, key 37, versions 0-3: more partitions for topics, each with an answer of its own.

Behaviour: the count is the new total; replicas may be assigned to the added partitions. A topic named twice
is refused, with one answer. With validate_only nothing is created.
Versions:  v3 partitions beyond the client's quota are refused; before they are created and the client is
throttled."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.deadline import within
from barnabas.broker.portions import drained, drained_items
from barnabas.broker.turns import Work
from barnabas.errors import KafkaError
from barnabas.metadata.topics import NewPartitions, PartitionsResults, absent_topic, repeated_topic
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

STRICT_QUOTA_VERSION_MIN = 3


def create_partitions(call: Call, request: CreatePartitionsRequest) -> Work[CreatePartitionsResponse]:
    results: PartitionsResults = {}
    names: list[str] = []
    wanted = yield from _wanted(call, request, results, names)
    mutations = call.broker.quotas.mutations(call, is_strict=call.version >= STRICT_QUOTA_VERSION_MIN)
    try:
        work = call.broker.controller.create_partitions(
            wanted, validate_only=request.validate_only, charge=mutations.charge
        )
        results |= yield within(request.timeout_ms, call.broker.replicas.settled_after(work))
    except KafkaError as error:
        results |= {topic.name: error for topic in wanted}
    response = yield from _response(names, results)
    response.throttle_time_ms = mutations.throttle_ms()
    return response


def _wanted(
    call: Call, request: CreatePartitionsRequest, results: PartitionsResults, names: list[str]
) -> Work[list[NewPartitions]]:
    """What the controller has to create. Adds the names of all topics, and the results of repeated ones;
    topics that do not exist get none here."""
    topics = call.broker.image.topics
    by_name: dict[str, CreatePartitionsTopic | None] = {}
    for topic in drained(request.topics):
        # None where a name is repeated.
        by_name[topic.name] = None if topic.name in by_name else topic
        yield
    wanted = []
    for name, once in drained_items(by_name):
        names.append(name)
        if once is None:
            results[name] = repeated_topic(name)
        elif name in topics:
            wanted.append(_new_partitions(once))
        yield
    return wanted


def _response(names: list[str], results: PartitionsResults) -> Work[CreatePartitionsResponse]:
    response = CreatePartitionsResponse()
    for name in names:
        response.results.append(_result(name, results[name] if name in results else absent_topic(name)))
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
