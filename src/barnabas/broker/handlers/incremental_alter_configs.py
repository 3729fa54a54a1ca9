"""IncrementalAlterConfigs, key 44, versions 0-1: set and delete configs, append to and subtract from lists.

Behaviour: a resource changes as a whole or not at all; topics, this broker, with an empty broker name the
defaults of all brokers, groups, and the levels of this process's loggers. With validate_only nothing
changes. A broker that is not the controller forwards what it cannot do itself.
Not done:  client metrics subscriptions."""

from __future__ import annotations

from typing import TypeAlias

from barnabas.broker.call import Call
from barnabas.broker.config_forwarding import check_own_settings, forward_changes, must_forward_part
from barnabas.broker.loggers import change_levels, check_levels
from barnabas.broker.portions import drained_items
from barnabas.broker.resources import (
    BROKER,
    BROKER_LOGGER,
    change_in_portions,
    check_once,
    check_this_broker,
    in_order,
    once_each,
)
from barnabas.broker.turns import Work
from barnabas.errors import KafkaError
from barnabas.metadata.configs import ConfigChange, alter_configs
from barnabas.metadata.parts import ConfigResource
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

KEY = 44

Alteration: TypeAlias = tuple[ConfigResource, list[ConfigChange]]
Answers: TypeAlias = dict[ConfigResource, AlterConfigsResourceResponse]


def incremental_alter_configs(
    call: Call, request: IncrementalAlterConfigsRequest
) -> Work[IncrementalAlterConfigsResponse]:
    answers: Answers = {}
    resources, order = yield from once_each(request.resources)
    pending = yield from _checked(call, resources, answers, request.validate_only)
    yield from change_in_portions(pending, lambda portion: _alter(call, portion, request.validate_only))
    return IncrementalAlterConfigsResponse(responses=(yield from in_order(order, answers)))


def _checked(
    call: Call,
    resources: dict[ConfigResource, AlterConfigsResource | None],
    answers: Answers,
    validate_only: bool,
) -> Work[list[tuple[Alteration, AlterConfigsResourceResponse]]]:
    """What the controller has to change, each with its answer; levels of loggers are changed here. Adds all
    answers."""
    pending = []
    for key, once in drained_items(resources):
        kind, name = key
        answer = AlterConfigsResourceResponse(resource_type=kind, resource_name=name, error_message=None)
        answers[key] = answer
        try:
            resource = check_once(once)
            changes = [
                ConfigChange(config.name, config.config_operation, config.value)
                for config in resource.configs
            ]
            if kind == BROKER_LOGGER:
                _alter_loggers(call, name, changes, validate_only)
            else:
                if kind == BROKER and name and not call.is_forwarded:
                    check_this_broker(call, name)
                    _check_here(call, (key, changes))
                pending.append((((kind, name), changes), answer))
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.message
        yield
    return pending


def _check_here(call: Call, alteration: Alteration) -> None:
    check_own_settings(call.broker, lambda image, rules: alter_configs(image, [alteration], rules))


def _alter_loggers(call: Call, name: str, changes: list[ConfigChange], validate_only: bool) -> None:
    check_this_broker(call, name)
    check_levels(changes)
    if not validate_only:
        change_levels(changes)


async def _alter(call: Call, alterations: list[Alteration], validate_only: bool) -> list[KafkaError | None]:
    try:
        if must_forward_part(call.broker):
            return await forward_changes(call.broker, KEY, _request(alterations, validate_only))
        return await call.broker.controller.alter_configs(alterations, validate_only=validate_only)
    except KafkaError as error:
        return [error] * len(alterations)


def _request(alterations: list[Alteration], validate_only: bool) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        validate_only=validate_only,
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    AlterableConfig(name=change.key, config_operation=change.operation, value=change.value)
                    for change in changes
                ],
            )
            for (kind, name), changes in alterations
        ],
    )
