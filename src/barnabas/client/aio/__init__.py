"""The clients for those who live in asyncio: AsyncProducer, AsyncConsumer, AsyncAdmin.

They are the same clients with another way of waiting: nothing here blocks the event loop, and the work on the
network goes on in the client's own I/O thread, one per client, however busy the loop is."""

from barnabas.client.aio.admin import AsyncAdmin
from barnabas.client.aio.consumer import AsyncConsumer
from barnabas.client.aio.producer import AsyncProducer

__all__ = ["AsyncAdmin", "AsyncConsumer", "AsyncProducer"]
