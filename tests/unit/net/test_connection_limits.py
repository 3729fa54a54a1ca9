"""A peer cannot use up the memory or the time of a connection's owner. The owner learns when it leaves."""

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.accepting import accepting

from barnabas.net.connection import FIRST_BUFFER_BYTES, Connection
from barnabas.net.turn import TURN_SECONDS_MAX

FRAME_BYTES_MAX = 64 * 1024 * 1024


class Owner:
    """Answers each frame with as many bytes, after working for so long; or never."""

    def __init__(self, work_seconds: float = 0.0, *, answers: bool = True) -> None:
        self.work_seconds = work_seconds
        self.answers = answers
        self.turns: list[int] = []
        self.turn = 0
        self.connection: Connection | None = None
        self.abandoned = 0
        self.requested = asyncio.Event()
        self.gone = asyncio.Event()

    def opened(self, connection: Connection) -> None:
        self.connection = connection

    keys_answered_first: frozenset[int] = frozenset()

    def answer_first(self, connection: Connection, arrived: memoryview) -> tuple[int, bytes]:
        return 0, b""

    def frame(self, connection: Connection, frame: memoryview) -> None:
        time.sleep(self.work_seconds)
        self.turns.append(self.turn)
        self.requested.set()
        connection.when_abandoned = self.leave
        if self.answers:
            connection.reply([struct.pack(">i", len(frame)) + bytes(frame)])

    def leave(self) -> None:
        self.abandoned += 1

    def refused(self, connection: Connection, reason: str) -> None:
        raise AssertionError(reason)

    def closed(self, connection: Connection) -> None:
        self.connection = None
        self.gone.set()

    async def count_turns(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)


@asynccontextmanager
async def peer_of(owner: Owner) -> AsyncIterator[socket.socket]:
    loop = asyncio.get_running_loop()
    acceptor = await accepting(lambda: Connection(owner, loop, FRAME_BYTES_MAX))
    peer = socket.socket()
    peer.setblocking(False)
    try:
        await loop.sock_connect(peer, ("127.0.0.1", acceptor.port))
        yield peer
    finally:
        peer.close()
        if owner.connection is not None:
            owner.connection.close()
        acceptor.close()


def test_requests_that_piled_up_are_answered_over_several_turns() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        owner = Owner(work_seconds=TURN_SECONDS_MAX / 5)
        async with peer_of(owner) as peer:
            turns = asyncio.create_task(owner.count_turns())
            frame = struct.pack(">i", 8) + b"12345678"
            await loop.sock_sendall(peer, frame * 50)
            received = b""
            while len(received) < 50 * len(frame):
                received += await loop.sock_recv(peer, 65536)
            turns.cancel()
        assert received == frame * 50
        # Otherwise the loop did nothing else for all of the fifty.
        assert len(set(owner.turns)) >= 5

    asyncio.run(story())


def test_a_buffer_grows_with_what_arrives_and_not_with_what_is_announced() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        owner = Owner()
        async with peer_of(owner) as peer:
            for byte in struct.pack(">i", FRAME_BYTES_MAX) + bytes(30):
                await loop.sock_sendall(peer, bytes([byte]))
                await asyncio.sleep(0.001)
            assert owner.connection is not None
            assert len(owner.connection._buffer) == FIRST_BUFFER_BYTES
            rest = FRAME_BYTES_MAX - 30
            answer = bytearray()
            sending = asyncio.create_task(loop.sock_sendall(peer, bytes(rest)))
            while len(answer) < 4 + FRAME_BYTES_MAX:
                answer += await loop.sock_recv(peer, 1 << 20)
            await sending

    asyncio.run(story())


def test_the_handler_is_notified_of_a_peer_that_leaves_before_the_answer() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        owner = Owner(answers=False)
        async with peer_of(owner) as peer:
            await loop.sock_sendall(peer, struct.pack(">i", 8) + b"12345678")
            await owner.requested.wait()
            peer.close()
            await owner.gone.wait()
        assert owner.abandoned == 1

    asyncio.run(story())


def test_the_handler_is_not_notified_of_a_peer_that_leaves_after_the_answer() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        owner = Owner()
        async with peer_of(owner) as peer:
            await loop.sock_sendall(peer, struct.pack(">i", 8) + b"12345678")
            assert await loop.sock_recv(peer, 100)
            peer.close()
            await owner.gone.wait()
        assert owner.abandoned == 0

    asyncio.run(story())
