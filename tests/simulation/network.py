"""The network of a simulation: frames between brokers, and from clients to brokers, late or never.

A frame is what a socket would carry, and it reaches the broker's dispatcher as if it came from one. A link
can be cut in each direction: then frames are lost until it is healed, and the sender finds out by a timeout.
Over a link that is not cut some requests fail, too, before or after they were carried out."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.errors import DisconnectedError, KafkaTimeoutError
from barnabas.log.reading import LogSlice
from barnabas.wire.apis import api_of
from barnabas.wire.codec import RequestHeader, decode_response, encode_request
from barnabas.wire.message import Message

if TYPE_CHECKING:
    from tests.simulation.world import World

LATENCY_SECONDS = 0.001
# How many of the requests over a good link are lost with their connection.
LOSS = 0.002
CLIENT = 0


class FakeConnection:
    """What a handler and the dispatcher use of a connection; the reply goes to a future."""

    peer_host = "127.0.0.1"
    peer_port = 1

    def __init__(self) -> None:
        self.is_closed = False
        self.short_way: Any = None
        self.session: Any = None
        self.when_abandoned: Callable[[], object] | None = None
        self.answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

    def reply(self, chunks: list[Any] | None) -> None:
        self.when_abandoned = None
        if not self.answer.done():
            self.answer.set_result(None if chunks is None else b"".join(map(_read, chunks)))

    def close(self) -> None:
        self.is_closed = True
        if self.when_abandoned is not None:
            self.when_abandoned()
        if not self.answer.done():
            self.answer.set_exception(DisconnectedError("the simulated broker closed the connection"))


def _read(chunk: Any) -> bytes:
    if not isinstance(chunk, LogSlice):
        return bytes(chunk)
    try:
        return b"" if chunk.file is None else os.pread(chunk.file.fileno(), chunk.size, chunk.position)
    finally:
        chunk.release()


class Network:
    def __init__(self, world: World, chooser: random.Random) -> None:
        self._world = world
        self._random = chooser
        self._cut: set[tuple[int, int]] = set()
        self._slow: dict[tuple[int, int], float] = {}

    def cut(self, sender: int, receiver: int) -> None:
        self._cut.add((sender, receiver))

    def slow_down(self, sender: int, receiver: int, seconds: float) -> None:
        self._slow[sender, receiver] = seconds

    def heal(self) -> None:
        self._cut.clear()
        self._slow.clear()

    async def send(
        self, sender: int, receiver: int, api_key: int, message: Message, within_seconds: float
    ) -> Any:
        """One request and its answer."""
        api = api_of(api_key)
        assert api is not None
        try:
            async with asyncio.timeout(within_seconds):
                frame = b"".join(
                    bytes(chunk)  # type: ignore[arg-type]
                    for chunk in encode_request(RequestHeader(api_key, api.last, 7, "simulation"), message)
                )
                reply = await self._exchange(sender, receiver, frame[4:])
        except TimeoutError:
            text = f"broker {receiver} did not answer within {within_seconds:g} s"
            raise KafkaTimeoutError(text) from None
        return None if reply is None else decode_response(api_key, api.last, reply[4:])[1]

    async def exchange_frame(self, sender: int, receiver: int, frame: bytes) -> bytes:
        """One request that is a frame with its size, and the frame of its answer, without its size."""
        reply = await self._exchange(sender, receiver, frame[4:])
        assert reply is not None
        return reply[4:]

    async def _exchange(self, sender: int, receiver: int, frame: bytes) -> bytes | None:
        await self._travel(sender, receiver)
        process = self._world.process(receiver)
        if process is None or not process.is_serving:
            raise DisconnectedError(f"broker {receiver} refuses connections")
        connection = FakeConnection()
        reply = await process.exchange(connection, frame)
        await self._travel(receiver, sender)
        return reply

    async def _travel(self, sender: int, receiver: int) -> None:
        latency = self._random.expovariate(1 / LATENCY_SECONDS) + self._slow.get((sender, receiver), 0.0)
        await asyncio.sleep(latency)
        if self._random.random() < LOSS:
            raise DisconnectedError("the simulated network lost a connection")
        if (sender, receiver) in self._cut:
            # Nothing arrives, and nobody is told: the sender gives up after its own timeout.
            await asyncio.sleep(3600)
            raise DisconnectedError("the simulated link was cut")
