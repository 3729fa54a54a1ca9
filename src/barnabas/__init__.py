"""Barnabas: a Kafka-compatible event log in Python.

The clients are imported when they are first used, so that `import barnabas` stays cheap."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client import Admin as Admin
    from barnabas.client import AsyncAdmin as AsyncAdmin
    from barnabas.client import AsyncConsumer as AsyncConsumer
    from barnabas.client import AsyncProducer as AsyncProducer
    from barnabas.client import Consumer as Consumer
    from barnabas.client import ConsumerWorkers as ConsumerWorkers
    from barnabas.client import OffsetAndMetadata as OffsetAndMetadata
    from barnabas.client import Producer as Producer
    from barnabas.client import SubscriptionPattern as SubscriptionPattern
    from barnabas.client import TopicPartition as TopicPartition

__version__ = "0.1.0"

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
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import barnabas.client

    return getattr(barnabas.client, name)
