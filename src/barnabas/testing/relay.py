"""One connection that passes a link: its bytes go on at once, or late and slowly, or not at all."""

import asyncio
import contextlib
import math
import random
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

CHUNK_BYTES = 1 << 16
PACKET_BYTES = 1460
# How long TCP waits for the answer to a packet before it sends it again; twice as long each further time.
RETRANSMISSION_SECONDS = 0.2
# So much of one connection is under way at a time; more stays with the sender.
UNDER_WAY_BYTES_MAX = 1 << 18
# How soon a connection notices that its link is good again.
NOTICE_SECONDS = 0.05
# A limited link passes on as much as fits into this time, then again as much.
SLICE_SECONDS = 0.02

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Quality:
    """What a network does to the bytes between two processes. They arrive `delay_ms` later, more or less by
    up to `jitter_ms`. `loss` is the share of packets that are lost: with TCP they arrive after a pause.
    `resets` is the share of packets at which the connection breaks."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss: float = 0.0
    resets: float = 0.0
    bytes_per_second: float = math.inf

    def and_also(self, other: "Quality") -> "Quality":
        """What both do together."""
        return Quality(
            self.delay_ms + other.delay_ms,
            self.jitter_ms + other.jitter_ms,
            1 - (1 - self.loss) * (1 - other.loss),
            1 - (1 - self.resets) * (1 - other.resets),
            min(self.bytes_per_second, other.bytes_per_second),
        )


PERFECT = Quality()


class BrokenLink(Exception):
    """The network ends this connection."""


class Direction:
    """The way from one process to another. All connections between the two share it."""

    def __init__(self) -> None:
        self.cuts = 0
        self.qualities: list[Quality] = []
        self._quality = PERFECT
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._free_at = 0.0
        self._chance = random.Random(0)

    def changed(self) -> None:
        """Take `cuts` and `qualities` into account."""
        self._quality = PERFECT
        for quality in self.qualities:
            self._quality = self._quality.and_also(quality)
        if self.cuts:
            self._is_open.clear()
        else:
            self._is_open.set()

    def slices(self, data: bytes) -> Iterator[bytes]:
        """The parts in which these bytes are passed on."""
        speed = self._quality.bytes_per_second
        size = len(data) if speed == math.inf else max(PACKET_BYTES, int(speed * SLICE_SECONDS))
        return (data[start : start + size] for start in range(0, len(data), size))

    def arrival(self, size: int) -> float:
        """When so many bytes, which are sent now, arrive at the earliest."""
        quality = self._quality
        if quality is PERFECT:
            return 0.0
        self._free_at = max(self._free_at, _now()) + size / quality.bytes_per_second
        packets = math.ceil(size / PACKET_BYTES)
        if self._happens(quality.resets, packets):
            raise BrokenLink
        late = quality.delay_ms + self._chance.uniform(-1, 1) * quality.jitter_ms
        pause = RETRANSMISSION_SECONDS
        while self._happens(quality.loss, packets):
            late, pause, packets = late + 1000 * pause, 2 * pause, 1
        return self._free_at + late / 1000

    def _happens(self, share: float, packets: int) -> bool:
        return share > 0 and self._chance.random() < 1 - (1 - share) ** packets

    async def passed(self, at: float = 0.0) -> None:
        """Return when bytes that arrive `at` this time, or an end of a connection, have come through."""
        while True:
            await self._is_open.wait()
            seconds = 0.0 if self._quality is PERFECT else at - _now()
            if seconds <= 0:
                return
            await asyncio.sleep(min(seconds, NOTICE_SECONDS))


def _now() -> float:
    return asyncio.get_running_loop().time()


class Tap(Protocol):
    """Sees all bytes of one connection. What it yields goes on; BrokenLink ends the connection."""

    def requests(self, data: bytes) -> AsyncIterator[bytes]: ...

    def answers(self, data: bytes) -> AsyncIterator[bytes]: ...


class OpenTap:
    async def requests(self, data: bytes) -> AsyncIterator[bytes]:
        yield data

    answers = requests


Inspect = Callable[[bytes], AsyncIterator[bytes]]


class _Pump:
    """Passes on the bytes of one direction of one connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        direction: Direction,
        inspect: Inspect,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._direction, self._inspect = direction, inspect
        # (when they arrive, bytes); no bytes are the end of the connection, None is its break. None of them
        # overtakes another.
        self._under_way: asyncio.Queue[tuple[float, bytes | None]] = asyncio.Queue()
        self._bytes_under_way = 0
        self._has_room = asyncio.Event()

    async def run(self) -> None:
        """Return when the sender's end of the connection has come through. BrokenLink: the network ends it.
        ConnectionError: the receiver is gone, which the sender learns only through the other direction."""
        reading = asyncio.ensure_future(self._read())
        try:
            await self._write()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            # A reset by the sender is the end of the connection, too.
            with contextlib.suppress(ConnectionError):
                while data := await self._reader.read(CHUNK_BYTES):
                    async for passed in self._inspect(data):
                        for piece in self._direction.slices(passed):
                            await self._send(self._direction.arrival(len(piece)), piece)
            self._under_way.put_nowait((self._direction.arrival(0), b""))
        except BrokenLink:
            self._under_way.put_nowait((0.0, None))

    async def _send(self, at: float, piece: bytes) -> None:
        while self._bytes_under_way > UNDER_WAY_BYTES_MAX:
            self._has_room.clear()
            await self._has_room.wait()
        self._bytes_under_way += len(piece)
        self._under_way.put_nowait((at, piece))

    async def _write(self) -> None:
        while True:
            at, piece = await self._under_way.get()
            await self._direction.passed(at)
            if piece is None:
                raise BrokenLink
            if not piece:
                return
            self._writer.write(piece)
            await self._writer.drain()
            self._bytes_under_way -= len(piece)
            self._has_room.set()


async def relay(near: Streams, far: Streams, there: Direction, back: Direction, tap: Tap) -> None:
    """Pass bytes on between the two ends of a connection until it ends."""
    pumps = {
        asyncio.ensure_future(_Pump(near[0], far[1], there, tap.requests).run()),
        asyncio.ensure_future(_Pump(far[0], near[1], back, tap.answers).run()),
    }
    running = pumps
    try:
        while running:
            ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for pump in ended:
                if isinstance(pump.exception(), BrokenLink):
                    _reset(near[1], far[1])
            # If a receiver is gone, the other pump passes on its end when the link lets it through.
            if not all(isinstance(pump.exception(), ConnectionError) for pump in ended):
                return
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


def _reset(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        # Without lingering, a close sends a reset instead of a regular end.
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        writer.transport.abort()
