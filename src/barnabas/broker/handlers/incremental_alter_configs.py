"""IncrementalAlterConfigs, key 44, versions 0-1: set and delete configs, append to and subtract from lists.

Behaviour: a resource changes as a whole or not at all; topics, this broker, with an empty broker name the
defaults of all brokers, groups, and the levels of this process's loggers. With validate_only nothing
changes.
Not done:  client metrics subscriptions."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.loggers import change_levels, check_levels
from barnabas.broker.resources import (
    BROKER,
    BROKER_LOGGER,
    check_once,
    check_this_broker,
    repeated,
)
from barnabas.errors import KafkaError
from barnabas.metadata.configs import ConfigChange
from barnabas.metadata.parts import ConfigResource
from barnabas.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def incremental_alter_configs(
    call: Call, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    response = IncrementalAlterConfigsResponse()
    alterations: list[tuple[ConfigResource, list[ConfigChange]]] = []
    pending: list[AlterConfigsResourceResponse] = []
    twice = repeated(request.resources)
    for resource in request.resources:
        answer = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        response.responses.append(answer)
        try:
            check_once(resource, twice, (config.name for config in resource.configs))
            changes = [
                ConfigChange(config.name, config.config_operation, config.value)
                for config in resource.configs
            ]
            if resource.resource_type == BROKER_LOGGER:
                _alter_loggers(call, resource.resource_name, changes, request.validate_only)
                continue
            if resource.resource_type == BROKER and resource.resource_name:
                check_this_broker(call, resource.resource_name)
            alterations.append(((resource.resource_type, resource.resource_name), changes))
            pending.append(answer)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.message
    results = await _alter(call, alterations, request.validate_only)
    for answer, refusal in zip(pending, results, strict=True):
        if refusal is not None:
            answer.error_code, answer.error_message = refusal.code, refusal.message
    return response


def _alter_loggers(call: Call, name: str, changes: list[ConfigChange], validate_only: bool) -> None:
    check_this_broker(call, name)
    check_levels(changes)
    if not validate_only:
        change_levels(changes)


async def _alter(
    call: Call, alterations: list[tuple[ConfigResource, list[ConfigChange]]], validate_only: bool
) -> list[KafkaError | None]:
    try:
        return await call.broker.controller.alter_configs(alterations, validate_only=validate_only)
    except KafkaError as error:
        return [error] * len(alterations)
