"""CreateTopics, key 19, versions 2-7: new topics, each with an answer of its own.

Behaviour: -1 partitions or replicas mean the broker's defaults; with a replica assignment both must be -1. A
topic named twice is refused, with one answer. With validate_only nothing is created.
Versions:  v4 the defaults of -1 · v5 answers with counts and all configs · v6 a topic beyond the client's
quota is refused, before it is created and the client is throttled · v7 with the topic's id."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.call import Call
from barnabas.broker.deadline import within
from barnabas.broker.portions import drained, drained_items
from barnabas.broker.resources import dynamic_configs
from barnabas.broker.turns import Work
from barnabas.config.describe import describe_topic
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.topics import CreatedTopic, CreateResults, NewTopic, repeated_topic
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

CONFIGS_VERSION_MIN = 5
STRICT_QUOTA_VERSION_MIN = 6


def create_topics(call: Call, request: CreateTopicsRequest) -> Work[CreateTopicsResponse]:
    results: CreateResults = {}
    new_topics = yield from _new_topics(request, results)
    controller = call.broker.controller
    mutations = call.broker.quotas.mutations(call, is_strict=call.version >= STRICT_QUOTA_VERSION_MIN)
    try:
        work = controller.create_topics(
            new_topics, validate_only=request.validate_only, charge=mutations.charge
        )
        results |= yield within(request.timeout_ms, call.broker.replicas.settled_after(work))
    except KafkaError as error:
        results |= {topic.name: error for topic in new_topics}
    response = yield from _response(call, new_topics, results)
    response.throttle_time_ms = mutations.throttle_ms()
    return response


def _new_topics(request: CreateTopicsRequest, results: CreateResults) -> Work[list[NewTopic]]:
    """What the controller has to create. Adds the results of topics that are refused here.

    Takes the topics out of the request."""
    by_name: dict[str, CreatableTopic | None] = {}
    for topic in drained(request.topics):
        # None where a name is repeated.
        by_name[topic.name] = None if topic.name in by_name else topic
        yield
    new_topics = []
    for name, once in drained_items(by_name):
        if once is None:
            results[name] = repeated_topic(name)
        elif _assigns_twice(once):
            results[name] = KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition has its replicas assigned more than once"
            )
        else:
            new_topics.append(_new_topic(once))
        yield
    return new_topics


def _response(call: Call, new_topics: list[NewTopic], results: CreateResults) -> Work[CreateTopicsResponse]:
    configs = {}
    for topic in drained(new_topics):
        if isinstance(results[topic.name], CreatedTopic):
            configs[topic.name] = _overrides(topic)
        yield
    response = CreateTopicsResponse()
    for name, result in drained_items(results):
        response.topics.append(_result(call, name, result, configs.get(name, {})))
        yield
    return response


def _assigns_twice(topic: CreatableTopic) -> bool:
    return len({assigned.partition_index for assigned in topic.assignments}) != len(topic.assignments)


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        {assigned.partition_index: assigned.broker_ids for assigned in topic.assignments},
        {config.name: config.value for config in topic.configs},
    )


def _overrides(topic: NewTopic) -> Mapping[str, str]:
    return {name: value for name, value in topic.configs.items() if value is not None}


def _result(
    call: Call, name: str, result: CreatedTopic | KafkaError, overrides: Mapping[str, str]
) -> CreatableTopicResult:
    if isinstance(result, KafkaError):
        return CreatableTopicResult(name=name, error_code=result.code, error_message=result.message)
    return CreatableTopicResult(
        name=name,
        topic_id=result.id,
        error_message=None,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
        configs=_configs(call, overrides) if call.version >= CONFIGS_VERSION_MIN else [],
    )


def _configs(call: Call, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    entries = describe_topic(call.broker.config, *dynamic_configs(call), overrides)
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in sorted(entries)
    ]
