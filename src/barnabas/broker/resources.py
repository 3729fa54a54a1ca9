"""The kinds of resources that have configs, by Kafka's numbers, and checks of requests that alter them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.parts import CLUSTER_DEFAULT

if TYPE_CHECKING:
    from barnabas.broker.call import Call

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
# The controller checks the configs of this many resources at a time, which takes a few milliseconds.
RESOURCES_PER_PORTION = 20


class Resource(Protocol):
    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...


class _Answer(Protocol):
    error_code: int
    error_message: str | None


AnyResource = TypeVar("AnyResource", bound=Resource)
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


def once_each(resources: Iterable[AnyResource]) -> Work[dict[tuple[int, str], AnyResource | None]]:
    """The resources by type and name; None where a request has one more than once, which is refused."""
    by_name: dict[tuple[int, str], AnyResource | None] = {}
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        by_name[key] = None if key in by_name else resource
        yield
    return by_name


def in_order_of(
    resources: Iterable[Resource], answers: Mapping[tuple[int, str], Answer]
) -> Work[list[Answer]]:
    """An answer for each resource of the request, also for those that are repeated: as in Kafka."""
    ordered = []
    for resource in resources:
        ordered.append(answers[resource.resource_type, resource.resource_name])
        yield
    return ordered


def change_in_portions(
    pending: Sequence[tuple[Change, Answer]],
    change: Callable[[list[Change]], Awaitable[Sequence[KafkaError | None]]],
) -> Work[None]:
    """Have the changes made, some at a time, and write into the answers which were refused."""
    for start in range(0, len(pending), RESOURCES_PER_PORTION):
        portion = pending[start : start + RESOURCES_PER_PORTION]
        refusals = yield change([wanted for wanted, _ in portion])
        for (_, answer), refusal in zip(portion, refusals, strict=True):
            if refusal is not None:
                answer.error_code, answer.error_message = refusal.code, refusal.message
        yield


def check_once(
    resource: AnyResource | None, config_names: Callable[[AnyResource], Iterable[str]]
) -> AnyResource:
    """A resource may be in a request only once, and so may each config of it."""
    if resource is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the resource is in the request more than once")
    for name, count in Counter(config_names(resource)).items():
        if count > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"config {name} is in the request {count} times")
    return resource
