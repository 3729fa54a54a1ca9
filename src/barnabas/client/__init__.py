"""The Python clients: Producer, Consumer and Admin, for any broker that speaks Kafka's protocol.

Names are exported lazily, so that a program pays only for the client it uses."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.admin import Admin as Admin
    from barnabas.client.consumer import Consumer as Consumer
    from barnabas.client.producer import Producer as Producer
    from barnabas.client.types import OffsetAndMetadata as OffsetAndMetadata
    from barnabas.client.types import TopicPartition as TopicPartition

_HOMES = {
    "Admin": "barnabas.client.admin",
    "Consumer": "barnabas.client.consumer",
    "OffsetAndMetadata": "barnabas.client.types",
    "Producer": "barnabas.client.producer",
    "TopicPartition": "barnabas.client.types",
}

__all__ = ["Admin", "Consumer", "OffsetAndMetadata", "Producer", "TopicPartition"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
