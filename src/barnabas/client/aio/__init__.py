"""The clients for asyncio: AsyncProducer, AsyncConsumer, AsyncAdmin.

They are the same clients, but they await instead of blocking. Network traffic runs in the client's own I/O
thread, one per client, so it continues even if the user's event loop is busy."""

from barnabas.client.aio.admin import AsyncAdmin
from barnabas.client.aio.consumer import AsyncConsumer
from barnabas.client.aio.producer import AsyncProducer

__all__ = ["AsyncAdmin", "AsyncConsumer", "AsyncProducer"]
