"""The Python clients: Producer, Consumer and Admin, their asyncio forms, and ConsumerWorkers. They work with
any broker that speaks Kafka's protocol.

Programs import from `barnabas`, which has all public names; the most used ones are also here."""

from typing import TYPE_CHECKING, Any

import barnabas

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


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(barnabas, name)
