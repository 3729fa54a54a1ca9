"""The kinds of resources that have configs, by Kafka's numbers, and checks of requests that alter them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeVar

from barnabas.broker.portions import drained
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.parts import CLUSTER_DEFAULT, ConfigResource

if TYPE_CHECKING:
    from barnabas.broker.call import Call

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
# The controller checks the configs of this many resources at a time, which takes a few milliseconds.
RESOURCES_PER_PORTION = 20
# A request may have this many configs for one resource, and so many characters in their names and values. The
# controller checks and writes them in one go. A broker has fewer settings; a topic, far fewer.
CONFIGS_MAX = 1000
CONFIGS_CHARACTERS_MAX = 1024 * 1024


class Resource(Protocol):
    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...


class _Config(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str | None: ...


class AlteredResource(Resource, Protocol):
    @property
    def configs(self) -> Sequence[_Config]: ...


class _Answer(Protocol):
    error_code: int
    error_message: str | None


AnyResource = TypeVar("AnyResource", bound=Resource)
Altered = TypeVar("Altered", bound=AlteredResource)
Answer = TypeVar("Answer", bound=_Answer)
Change = TypeVar("Change")


def dynamic_configs(call: Call) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """What was set while running: the cluster's defaults, and this broker's own."""
    image = call.broker.image
    return image.config(*CLUSTER_DEFAULT), image.config(BROKER, str(call.broker.id))


def check_this_broker(call: Call, name: str) -> None:
    """Brokers answer for themselves only: a client sends a broker's configs to that broker."""
    if name != str(call.broker.id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"broker {call.broker.id} cannot answer for broker {name}: send the request to that broker",
        )


def once_each(
    resources: list[AnyResource],
) -> Work[tuple[dict[ConfigResource, AnyResource | None], list[ConfigResource]]]:
    """Take the resources out of the list. Returns them by type and name, None where a request has one more
    than once, which is refused; and the types and names in the order of the request."""
    by_name: dict[ConfigResource, AnyResource | None] = {}
    order: list[ConfigResource] = []
    for resource in drained(resources):
        key = (resource.resource_type, resource.resource_name)
        by_name[key] = None if key in by_name else resource
        order.append(key)
        yield
    return by_name, order


def in_order(order: Iterable[ConfigResource], answers: Mapping[ConfigResource, Answer]) -> Work[list[Answer]]:
    """An answer for each resource of the request, also for those that are repeated: as in Kafka."""
    ordered = []
    for key in order:
        ordered.append(answers[key])
        yield
    return ordered


def change_in_portions(
    pending: list[tuple[Change, Answer]],
    change: Callable[[list[Change]], Awaitable[Sequence[KafkaError | None]]],
) -> Work[None]:
    """Take the changes out of the list, have them made, some at a time, and write into the answers which were
    refused."""
    changes = drained(pending)
    while portion := list(islice(changes, RESOURCES_PER_PORTION)):
        refusals = yield change([wanted for wanted, _ in portion])
        for (_, answer), refusal in zip(portion, refusals, strict=True):
            if refusal is not None:
                answer.error_code, answer.error_message = refusal.code, refusal.message
        yield


def check_once(resource: Altered | None) -> Altered:
    """A resource may be in a request only once, and so may each config of it."""
    if resource is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the resource is in the request more than once")
    count = len(resource.configs)
    if count > CONFIGS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"the resource has {count} configs; at most {CONFIGS_MAX} are allowed"
        )
    characters = sum(len(config.name) + len(config.value or "") for config in resource.configs)
    if characters > CONFIGS_CHARACTERS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"the configs of the resource have {characters} characters; "
            f"at most {CONFIGS_CHARACTERS_MAX} are allowed",
        )
    for name, count in Counter(config.name for config in resource.configs).items():
        if count > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"config {name} is in the request {count} times")
    return resource
