"""DescribeConfigs, key 32, versions 1-4: every config of a resource, and where its value comes from.

Behaviour: topics; this broker by its id; with an empty broker name what was set for all brokers; the
loggers of this process; groups, existing or not. Client metrics subscriptions have no configs here. A
resource named twice is answered once: a few bytes must not ask for the work and the memory of thousands.
Versions:  v1 synonyms · v3 types and documentation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from barnabas.broker.call import Call
from barnabas.broker.loggers import logger_levels
from barnabas.broker.portions import drained
from barnabas.broker.resources import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    check_this_broker,
    dynamic_configs,
)
from barnabas.broker.turns import Work
from barnabas.config.describe import (
    ConfigEntry,
    describe_broker,
    describe_cluster_default,
    describe_group,
    describe_topic,
)
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import topic_name_problem
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

LOGGER_SOURCE = 6

Configs: TypeAlias = list[DescribeConfigsResourceResult]


def describe_configs(call: Call, request: DescribeConfigsRequest) -> Work[DescribeConfigsResponse]:
    known: dict[tuple[int, str], Configs] = {}
    results: dict[tuple[int, str, tuple[str, ...]], DescribeConfigsResult] = {}
    for resource in drained(request.resources):
        kind, name, keys = resource.resource_type, resource.resource_name, resource.configuration_keys
        configs = known.get((kind, name)) or _find_guarded(call, request, kind, name)
        if not isinstance(configs, KafkaError):
            known[kind, name] = configs
        results[kind, name, tuple(sorted(set(keys or ())))] = _result(resource, configs)
        yield
    return DescribeConfigsResponse(results=list(results.values()))


def _find_guarded(call: Call, request: DescribeConfigsRequest, kind: int, name: str) -> Configs | KafkaError:
    try:
        if kind == BROKER_LOGGER:
            return _loggers(call, name)
        return _converted(_entries(call, kind, name), request)
    except KafkaError as error:
        return error.as_result()


def _result(resource: DescribeConfigsResource, configs: Configs | KafkaError) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    if isinstance(configs, KafkaError):
        result.error_code, result.error_message = configs.code, configs.message
    else:
        wanted = frozenset(resource.configuration_keys or ())
        result.configs = [config for config in configs if not wanted or config.name in wanted]
    return result


def _entries(call: Call, kind: int, name: str) -> list[ConfigEntry]:
    config = call.broker.config
    cluster, broker = dynamic_configs(call)
    if kind == TOPIC:
        problem = topic_name_problem(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        if name not in call.broker.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return describe_topic(config, cluster, broker, call.broker.image.topic_config(name))
    if kind == BROKER:
        if not name:
            return describe_cluster_default(cluster)
        check_this_broker(call, name)
        return describe_broker(config, cluster, broker)
    if kind in (CLIENT_METRICS, GROUP):
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the name of the resource is empty")
        own = call.broker.image.config(GROUP, name)
        return describe_group(config, cluster, broker, own) if kind == GROUP else []
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"{kind} is not a type of resource that has configs")


def _loggers(call: Call, name: str) -> Configs:
    check_this_broker(call, name)
    return [
        DescribeConfigsResourceResult(
            name=logger, value=level, config_source=LOGGER_SOURCE, documentation=None
        )
        for logger, level in logger_levels().items()
    ]


def _converted(
    entries: Iterable[ConfigEntry], request: DescribeConfigsRequest
) -> list[DescribeConfigsResourceResult]:
    return [
        DescribeConfigsResourceResult(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
            synonyms=[
                DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
                for synonym in (entry.synonyms if request.include_synonyms else ())
            ],
            config_type=entry.type,
            documentation=entry.documentation if request.include_documentation else None,
        )
        for entry in entries
    ]
