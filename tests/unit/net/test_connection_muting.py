"""A muted connection: its reply is sent, and nothing more is answered until the time is over."""

import asyncio
import math
import struct

from tests.unit.net.test_connection import Owner, serving

from barnabas.net.chunks import Chunk
from barnabas.net.connection import BUFFER_BYTES


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class MutingOwner(Owner):
    """Echoes each frame, and mutes the connection before it answers one that says so."""

    def __init__(self, seconds: float) -> None:
        super().__init__(self._echo)
        self._seconds = seconds
        self.times: list[float] = []

    def _echo(self, frame: bytes) -> list[Chunk]:
        loop = asyncio.get_running_loop()
        self.times.append(loop.time())
        if frame.startswith(b"muted"):
            self.connections[0].mute_until(loop.time() + self._seconds)
        return [framed(frame)]


async def echoed(reader: asyncio.StreamReader, data: bytes) -> None:
    assert await asyncio.wait_for(reader.readexactly(len(data) + 4), 10) == framed(data)


def test_the_answer_comes_at_once_and_the_next_one_after_the_time() -> None:
    async def scenario() -> None:
        owner = MutingOwner(0.3)
        async with serving(owner) as (reader, writer):
            loop = asyncio.get_running_loop()
            began = loop.time()
            writer.write(framed(b"muted 1.") + framed(b"second 2") + framed(b"third 33"))
            await echoed(reader, b"muted 1.")
            assert loop.time() - began < 0.3
            assert len(owner.frames) == 1
            await echoed(reader, b"second 2")
            await echoed(reader, b"third 33")
            assert owner.times[1] - owner.times[0] >= 0.299

    asyncio.run(scenario())


def test_frames_that_are_answered_first_wait_too() -> None:
    async def scenario() -> None:
        owner = MutingOwner(0.2)
        async with serving(owner) as (reader, writer):
            writer.write(framed(b"muted 1."))
            await echoed(reader, b"muted 1.")
            writer.write(framed(b"!answered"))
            await asyncio.sleep(0.05)
            assert owner.tried_first == []
            await echoed(reader, b"!answered")

    asyncio.run(scenario())


def test_more_than_the_buffer_waits_in_the_socket() -> None:
    async def scenario() -> None:
        owner = MutingOwner(0.2)
        async with serving(owner) as (reader, writer):
            writer.write(framed(b"muted 1."))
            await echoed(reader, b"muted 1.")
            large = bytes(BUFFER_BYTES) * 3
            writer.write(framed(large) + framed(b"the last"))
            await echoed(reader, large)
            await echoed(reader, b"the last")

    asyncio.run(scenario())


def test_a_muted_connection_is_unmuted_or_closed() -> None:
    async def scenario() -> None:
        owner = MutingOwner(math.inf)
        async with serving(owner) as (reader, writer):
            writer.write(framed(b"muted 1."))
            await echoed(reader, b"muted 1.")
            writer.write(framed(b"second 2"))
            await asyncio.sleep(0.05)
            assert len(owner.frames) == 1
            owner.connections[0].unmute()
            await echoed(reader, b"second 2")
            writer.write(framed(b"muted 3."))
            await echoed(reader, b"muted 3.")
            writer.close()
            await asyncio.wait_for(owner.gone.wait(), 10)
            owner.connections[0].unmute()

    asyncio.run(scenario())


def test_a_connection_may_be_muted_from_the_beginning() -> None:
    async def scenario() -> None:
        owner = Owner(lambda frame: [framed(frame)])
        opened = owner.opened

        def open_muted(connection: object) -> None:
            opened(connection)  # type: ignore[arg-type]
            owner.connections[0].mute_until(asyncio.get_running_loop().time() + 0.2)

        owner.opened = open_muted  # type: ignore[method-assign]
        async with serving(owner) as (reader, writer):
            writer.write(framed(b"!answered") + framed(b"second 2"))
            await asyncio.sleep(0.05)
            assert owner.tried_first == []
            await echoed(reader, b"!answered")
            await echoed(reader, b"second 2")

    asyncio.run(scenario())


def test_the_last_of_two_times_counts() -> None:
    async def scenario() -> None:
        owner = MutingOwner(0.05)
        async with serving(owner) as (reader, writer):
            writer.write(framed(b"muted 1."))
            await echoed(reader, b"muted 1.")
            owner.connections[0].mute_until(asyncio.get_running_loop().time() + 0.3)
            writer.write(framed(b"second 2"))
            await echoed(reader, b"second 2")
            assert owner.times[1] - owner.times[0] >= 0.299

    asyncio.run(scenario())
