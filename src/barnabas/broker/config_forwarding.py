"""The part of a request to alter configs that only the controller can answer, sent there.

The broker that a client asks answers for its own settings and for the levels of its loggers, so these
requests are not forwarded as a whole. See forwarding.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.forwarding import FORWARD_SECONDS_MAX
from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.metadata.configs import ConfigRules, Results
from barnabas.metadata.decision import Decision

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.metadata.image import MetadataImage
    from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
    from barnabas.wire.messages.incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )


def must_forward_part(broker: Broker) -> bool:
    return broker.is_clustered and not broker.controller.active


def check_own_settings(
    broker: Broker, decide: Callable[[MetadataImage, ConfigRules], Decision[Results]]
) -> None:
    """KafkaError if this broker, which is not the controller, cannot use a change of its own settings: only
    here are the files that they name."""
    if must_forward_part(broker):
        (refusal,) = decide(broker.image, ConfigRules(lambda: broker.config)).result
        if refusal is not None:
            raise refusal


async def forward_changes(
    broker: Broker, api_key: int, request: AlterConfigsRequest | IncrementalAlterConfigsRequest
) -> list[KafkaError | None]:
    """The result of each resource, in the order of the request."""
    response: AlterConfigsResponse | IncrementalAlterConfigsResponse = await broker.controller_channel.send(
        api_key, request, within_seconds=FORWARD_SECONDS_MAX
    )
    answers = {(answer.resource_type, answer.resource_name): answer for answer in response.responses}
    results: list[KafkaError | None] = []
    for resource in request.resources:
        answer = answers[resource.resource_type, resource.resource_name]
        error = KafkaError(error_of(answer.error_code), answer.error_message)
        results.append(None if answer.error_code == ErrorCode.NONE else error)
    return results
