"""What carries configs, in Kafka's numbers, and the checks that both ways of altering them share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.parts import CLUSTER_DEFAULT

if TYPE_CHECKING:
    from barnabas.broker.call import Call

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


class Resource(Protocol):
    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...


def dynamic_configs(call: Call) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """What was set while running: the cluster's defaults, and this broker's own."""
    image = call.broker.image
    return image.config(*CLUSTER_DEFAULT), image.config(BROKER, str(call.broker.id))


def check_this_broker(call: Call, name: str) -> None:
    """Brokers answer for themselves only: a client sends a broker's configs to that broker."""
    if name != str(call.broker.id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"this is broker {call.broker.id}; {name!r} cannot be asked of it"
        )


def repeated(resources: Iterable[Resource]) -> set[tuple[int, str]]:
    """The resources that one request names more than once."""
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    return {resource for resource, count in counts.items() if count > 1}


def check_once(resource: Resource, twice: set[tuple[int, str]], config_names: Iterable[str]) -> None:
    """A resource may be in a request only once, and so may each config of it."""
    if (resource.resource_type, resource.resource_name) in twice:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the resource is in the request more than once")
    for name, count in Counter(config_names).items():
        if count > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"config {name} is in the request {count} times")
