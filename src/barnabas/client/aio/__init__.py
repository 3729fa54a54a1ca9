"""The clients for those who live in asyncio: AsyncProducer, AsyncConsumer, AsyncAdmin.

They are the same clients with another way of waiting: nothing here blocks the event loop, and the work on the
network goes on in the client's own I/O thread however busy the loop is."""
