"""AlterConfigs, key 33, versions 0-2: all configs of a resource at once; those not given are removed.

Behaviour: a resource changes as a whole or not at all; topics, this broker, and with an empty broker name
the defaults of all brokers, and groups. With validate_only nothing changes.
Not done:  client metrics subscriptions."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.resources import BROKER, check_once, check_this_broker, repeated
from barnabas.errors import KafkaError
from barnabas.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def alter_configs(call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    response = AlterConfigsResponse()
    pending: list[tuple[AlterConfigsResource, AlterConfigsResourceResponse]] = []
    twice = repeated(request.resources)
    for resource in request.resources:
        answer = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        response.responses.append(answer)
        try:
            check_once(resource, twice, (config.name for config in resource.configs))
            if resource.resource_type == BROKER and resource.resource_name:
                check_this_broker(call, resource.resource_name)
            pending.append((resource, answer))
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.message
    results = await _replace(call, [resource for resource, _ in pending], request.validate_only)
    for (_, answer), refusal in zip(pending, results, strict=True):
        if refusal is not None:
            answer.error_code, answer.error_message = refusal.code, refusal.message
    return response


async def _replace(
    call: Call, resources: list[AlterConfigsResource], validate_only: bool
) -> list[KafkaError | None]:
    replacements = [
        (
            (resource.resource_type, resource.resource_name),
            {config.name: config.value for config in resource.configs},
        )
        for resource in resources
    ]
    try:
        return await call.broker.controller.replace_configs(replacements, validate_only=validate_only)
    except KafkaError as error:
        return [error] * len(resources)
