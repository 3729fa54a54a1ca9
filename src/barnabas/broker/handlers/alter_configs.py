"""AlterConfigs, key 33, versions 0-2: all configs of a resource at once; those not given are removed.

Behaviour: a resource changes as a whole or not at all; topics, this broker, and with an empty broker name
the defaults of all brokers, and groups. With validate_only nothing changes. A broker that is not the
controller forwards what it has checked.
Not done:  client metrics subscriptions."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.call import Call
from barnabas.broker.config_forwarding import check_own_settings, forward_changes, must_forward_part
from barnabas.broker.portions import drained_items
from barnabas.broker.resources import (
    BROKER,
    change_in_portions,
    check_once,
    check_this_broker,
    in_order,
    once_each,
)
from barnabas.broker.turns import Work
from barnabas.errors import KafkaError
from barnabas.metadata.configs import replace_configs
from barnabas.metadata.parts import ConfigResource
from barnabas.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

KEY = 33


def alter_configs(call: Call, request: AlterConfigsRequest) -> Work[AlterConfigsResponse]:
    answers: dict[ConfigResource, AlterConfigsResourceResponse] = {}
    resources, order = yield from once_each(request.resources)
    pending = yield from _checked(call, resources, answers)
    yield from change_in_portions(pending, lambda portion: _replace(call, portion, request.validate_only))
    return AlterConfigsResponse(responses=(yield from in_order(order, answers)))


def _checked(
    call: Call,
    resources: dict[ConfigResource, AlterConfigsResource | None],
    answers: dict[ConfigResource, AlterConfigsResourceResponse],
) -> Work[list[tuple[AlterConfigsResource, AlterConfigsResourceResponse]]]:
    """The resources that the controller has to change, each with its answer. Adds all answers."""
    pending = []
    for key, once in drained_items(resources):
        kind, name = key
        answer = AlterConfigsResourceResponse(resource_type=kind, resource_name=name, error_message=None)
        answers[key] = answer
        try:
            resource = check_once(once)
            if kind == BROKER and name and not call.is_forwarded:
                check_this_broker(call, name)
                _check_here(call, resource)
            pending.append((resource, answer))
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.message
        yield
    return pending


def _check_here(call: Call, resource: AlterConfigsResource) -> None:
    replacement = _replacements([resource])
    check_own_settings(call.broker, lambda image, rules: replace_configs(image, replacement, rules))


async def _replace(
    call: Call, resources: list[AlterConfigsResource], validate_only: bool
) -> list[KafkaError | None]:
    try:
        if must_forward_part(call.broker):
            request = AlterConfigsRequest(resources=resources, validate_only=validate_only)
            return await forward_changes(call.broker, KEY, request)
        return await call.broker.controller.replace_configs(
            _replacements(resources), validate_only=validate_only
        )
    except KafkaError as error:
        return [error] * len(resources)


def _replacements(
    resources: list[AlterConfigsResource],
) -> list[tuple[ConfigResource, Mapping[str, str | None]]]:
    return [
        (
            (resource.resource_type, resource.resource_name),
            {config.name: config.value for config in resource.configs},
        )
        for resource in resources
    ]
