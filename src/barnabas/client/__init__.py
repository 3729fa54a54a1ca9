"""The Python clients: Producer, Consumer and Admin, their asyncio forms, and ConsumerWorkers. They work with
any broker that speaks Kafka's protocol.

Names are imported lazily, so that a program loads only the client it uses."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.admin import Admin as Admin
    from barnabas.client.aio.admin import AsyncAdmin as AsyncAdmin
    from barnabas.client.aio.consumer import AsyncConsumer as AsyncConsumer
    from barnabas.client.aio.producer import AsyncProducer as AsyncProducer
    from barnabas.client.consumer import Consumer as Consumer
    from barnabas.client.consumer.workers import ConsumerWorkers as ConsumerWorkers
    from barnabas.client.producer import Producer as Producer
    from barnabas.client.types import OffsetAndMetadata as OffsetAndMetadata
    from barnabas.client.types import SubscriptionPattern as SubscriptionPattern
    from barnabas.client.types import TopicPartition as TopicPartition

_HOMES = {
    "Admin": "barnabas.client.admin",
    "AsyncAdmin": "barnabas.client.aio.admin",
    "AsyncConsumer": "barnabas.client.aio.consumer",
    "AsyncProducer": "barnabas.client.aio.producer",
    "Consumer": "barnabas.client.consumer",
    "ConsumerWorkers": "barnabas.client.consumer.workers",
    "OffsetAndMetadata": "barnabas.client.types",
    "Producer": "barnabas.client.producer",
    "SubscriptionPattern": "barnabas.client.types",
    "TopicPartition": "barnabas.client.types",
}

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "Consumer",
    "ConsumerWorkers",
    "OffsetAndMetadata",
    "Producer",
    "SubscriptionPattern",
    "TopicPartition",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
