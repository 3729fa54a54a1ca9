"""ListConfigResources, key 74, versions 0-1: the names of what can have configs.

Behaviour: topics, brokers and their loggers are all listed; groups and client metrics subscriptions only
where configs are stored for them.
Versions:  v0 client metrics subscriptions alone · v1 any types; none named means all."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.broker.call import Call
from barnabas.broker.resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TYPES = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def list_config_resources(
    call: Call, request: ListConfigResourcesRequest
) -> Work[ListConfigResourcesResponse]:
    if call.version == 0:
        types: Iterable[int] = (CLIENT_METRICS,)
    else:
        types = dict.fromkeys(request.resource_types or TYPES)
    if not set(types) <= set(TYPES):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    response = ListConfigResourcesResponse()
    for kind in types:
        for name in _names(call.broker.image, kind):
            response.config_resources.append(ConfigResource(resource_type=kind, resource_name=name))
            yield
    return response


def _names(image: MetadataImage, kind: int) -> Iterable[str]:
    if kind == TOPIC:
        return sorted(image.topics)
    if kind in (BROKER, BROKER_LOGGER):
        return map(str, sorted(image.brokers))
    return sorted(name for stored, name in image.configs if stored == kind)
