"""What a framed connection promises, over real sockets."""

import asyncio
import gc
import socket
import struct
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pytest
from tests.support.accepting import accepting

from barnabas.net.chunks import Chunk
from barnabas.net.connection import BUFFER_BYTES, Connection

FRAME_BYTES_MAX = 4 * 1024 * 1024


@dataclass
class Range:
    file: BinaryIO
    position: int
    size: int
    is_released: bool = False

    def release(self) -> None:
        self.is_released = True


class Owner:
    """Answers each frame with what `answer` makes of it; None leaves it open until `later` is replied to."""

    def __init__(self, answer: Callable[[bytes], list[Chunk] | None]) -> None:
        self.answer = answer
        self.frames: list[bytes] = []
        self.refusals: list[str] = []
        self.connections: list[Connection] = []
        self.tried_first: list[tuple[Connection, bytes]] = []
        self.closed_count = 0
        self.gone = asyncio.Event()

    def opened(self, connection: Connection) -> None:
        self.connections.append(connection)

    keys_answered_first: frozenset[int] = frozenset(range(0x2100, 0x2200))

    def answer_first(self, connection: Connection, arrived: memoryview) -> tuple[int, bytes]:
        """As many frames as begin with an exclamation mark."""
        self.tried_first.append((connection, bytes(arrived)))
        taken, replies = 0, b""
        while arrived[taken + 4 : taken + 5] == b"!":
            size = 4 + int.from_bytes(arrived[taken : taken + 4])
            if len(arrived) < taken + size:
                break
            replies += arrived[taken : taken + size]
            taken += size
        return taken, replies

    def frame(self, connection: Connection, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        answer = self.answer(bytes(frame))
        if answer is not None:
            connection.reply(answer)

    def refused(self, connection: Connection, reason: str) -> None:
        self.refusals.append(reason)

    def closed(self, connection: Connection) -> None:
        self.closed_count += 1
        self.gone.set()


@asynccontextmanager
async def serving(owner: Owner) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    loop = asyncio.get_running_loop()
    acceptor = await accepting(lambda: Connection(owner, loop, FRAME_BYTES_MAX))
    reader, writer = await asyncio.open_connection("127.0.0.1", acceptor.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        for connection in owner.connections:
            connection.close()
        acceptor.close()


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(30_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("the condition did not become true in time")


def echo(frame: bytes) -> list[Chunk]:
    return [framed(frame)]


def test_a_frame_that_arrives_byte_by_byte_is_one_frame() -> None:
    async def story() -> None:
        owner = Owner(echo)
        async with serving(owner) as (reader, writer):
            for byte in framed(b"one request"):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0)
            assert await read_frame(reader) == b"one request"

    asyncio.run(story())


def test_pipelined_frames_are_answered_in_order_over_buffer_boundaries() -> None:
    async def story() -> None:
        # Some are answered on the spot, alone or several at a time, the others one by one.
        marks = ("", "!", "!", "!", "")
        bodies = [
            (marks[number % 5] + f"{number:08}" * (number * 7 % 1500 + 1)).encode() for number in range(300)
        ]
        assert sum(map(len, bodies)) > 10 * BUFFER_BYTES
        async with serving(Owner(echo)) as (reader, writer):
            writer.write(b"".join(map(framed, bodies)))
            assert [await read_frame(reader) for _ in bodies] == bodies

    asyncio.run(story())


@pytest.mark.parametrize(
    "size", [BUFFER_BYTES - 4, BUFFER_BYTES - 3, BUFFER_BYTES, 3 * BUFFER_BYTES + 1, FRAME_BYTES_MAX]
)
def test_a_frame_larger_than_the_buffer_arrives_whole_and_so_does_the_next(size: int) -> None:
    async def story() -> None:
        owner = Owner(lambda frame: [framed(frame[-8:])])
        async with serving(owner) as (reader, writer):
            writer.write(framed(bytes(size - 8) + b"the-tail") + framed(b"small one"))
            assert await read_frame(reader) == b"the-tail"
            assert await read_frame(reader) == b"mall one"
            owner.connections[0].shrink()
            writer.write(framed(b"and after shrinking"))
            assert await read_frame(reader) == b"hrinking"

    asyncio.run(story())


@pytest.mark.parametrize("size", [-1, 0, 7, FRAME_BYTES_MAX + 1, 2**31 - 1])
def test_an_impossible_size_closes_the_connection(size: int) -> None:
    async def story() -> None:
        owner = Owner(echo)
        async with serving(owner) as (reader, writer):
            writer.write(struct.pack(">i", size) + b"12345678")
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                await read_frame(reader)
            assert len(owner.refusals) == 1
            assert owner.frames == []
            assert owner.closed_count == 1

    asyncio.run(story())


def test_one_request_at_a_time_and_reading_stops_when_the_buffer_is_full() -> None:
    async def story() -> None:
        owner = Owner(lambda frame: None)
        async with serving(owner) as (reader, writer):
            total = 40 * BUFFER_BYTES // 1000
            for number in range(total):
                writer.write(framed(f"{number:08}".encode() + bytes(992)))
            await until(lambda: bool(owner.frames))
            await asyncio.sleep(0.05)  # time in which another frame could arrive
            assert len(owner.frames) == 1
            assert owner.connections[0].is_busy
            owner.answer = echo
            owner.connections[0].reply([framed(b"answered late")])
            assert await read_frame(reader) == b"answered late"
            rest = [await read_frame(reader) for _ in range(total - 1)]
            assert [int(frame[:8]) for frame in rest] == list(range(1, total))

    asyncio.run(story())


def test_a_reply_of_nothing_goes_on_to_the_next_frame() -> None:
    async def story() -> None:
        owner = Owner(echo)
        owner.answer = lambda frame: None
        async with serving(owner) as (reader, writer):
            writer.write(framed(b"no answer, please"))
            await until(lambda: bool(owner.frames))
            owner.answer = echo
            owner.connections[0].reply(None)
            writer.write(framed(b"an answer, please"))
            assert await read_frame(reader) == b"an answer, please"

    asyncio.run(story())


@pytest.mark.parametrize("size", [0, 1, 1000, 64 * 1024, 20 * 1024 * 1024])
def test_file_ranges_are_sent_between_the_bytes(tmp_path: Path, size: int) -> None:
    content = bytes(range(256)) * (size // 256 + 2)
    path = tmp_path / "segment"
    path.write_bytes(content)

    async def story() -> None:
        with path.open("rb") as file:
            whole = framed(b"head" + content[3 : 3 + size] + b"tail")
            owner = Owner(lambda frame: [whole[:8], Range(file, 3, size), b"tail"])
            async with serving(owner) as (reader, writer):
                writer.write(framed(b"fetch me") * 2)
                await asyncio.sleep(0.05)  # the socket's buffers fill up while nobody reads
                for _ in range(2):
                    assert await read_frame(reader) == whole[4:]

    asyncio.run(story())


@pytest.mark.parametrize("size", [1000, 200_000])
def test_a_file_that_became_shorter_ends_the_connection(tmp_path: Path, size: int) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(size // 2))

    async def story() -> None:
        with path.open("rb") as file:
            owner = Owner(lambda frame: [struct.pack(">i", size), Range(file, 0, size)])
            async with serving(owner) as (reader, writer):
                writer.write(framed(b"fetch me"))
                with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                    await read_frame(reader)
                assert owner.closed_count == 1

    asyncio.run(story())


def test_a_peer_that_goes_away_in_the_middle_of_a_reply_is_noticed() -> None:
    async def story() -> None:
        owner = Owner(lambda frame: [framed(bytes(FRAME_BYTES_MAX))])
        async with serving(owner) as (_, writer):
            for _ in range(20):
                writer.write(framed(b"send me much"))
            await until(lambda: bool(owner.frames) and owner.connections[0].is_busy)
            writer.transport.abort()
            async with asyncio.timeout(5):
                await owner.gone.wait()
            assert owner.closed_count == 1
            owner.connections[0].reply([framed(b"too late, ignored")])

    asyncio.run(story())


class Deferring(Owner):
    """Takes frames that begin with an exclamation mark, and answers them when the test says so."""

    def __init__(self) -> None:
        super().__init__(echo)
        self.deferred: list[bytes] = []

    def answer_first(self, connection: Connection, arrived: memoryview) -> tuple[int, bytes]:
        taken, replies = super().answer_first(connection, arrived)
        if taken and not self.deferred:
            connection.defer(self.deferred.clear)
        self.deferred += [replies] if taken else []
        return taken, b""

    def release(self, *, is_last: bool) -> None:
        replies = b"".join(self.deferred) if is_last else self.deferred.pop(0)
        if is_last:
            self.deferred.clear()
        self.connections[0].reply_deferred(replies, is_last=is_last)


def test_frames_behind_deferred_replies_wait_unless_they_can_be_deferred_too() -> None:
    async def story() -> None:
        owner = Deferring()
        async with serving(owner) as (reader, writer):
            writer.write(framed(b"!first one"))
            await until(lambda: len(owner.deferred) == 1)
            writer.write(framed(b"!second one"))
            await until(lambda: len(owner.deferred) == 2)
            writer.write(framed(b"an ordinary one") + framed(b"!third one"))
            await asyncio.sleep(0.01)
            assert owner.frames == []
            owner.release(is_last=False)
            assert await read_frame(reader) == b"!first one"
            assert owner.frames == []
            owner.release(is_last=True)
            assert await read_frame(reader) == b"!second one"
            assert await read_frame(reader) == b"an ordinary one"
            await until(lambda: len(owner.deferred) == 1)
            owner.release(is_last=True)
            assert await read_frame(reader) == b"!third one"

    asyncio.run(story())


def test_a_full_buffer_behind_deferred_replies_is_read_on_afterwards() -> None:
    async def story() -> None:
        owner = Deferring()
        async with serving(owner) as (reader, writer):
            writer.write(framed(b"!first one"))
            await until(lambda: len(owner.deferred) == 1)
            ordinary = [framed(b"ordinary" * 1000) for _ in range(60)]
            writer.write(b"".join(ordinary))
            await asyncio.sleep(0.02)
            assert owner.frames == []
            owner.release(is_last=True)
            assert await read_frame(reader) == b"!first one"
            for frame in ordinary:
                assert await read_frame(reader) == frame[4:]

    asyncio.run(story())


def test_a_frame_that_arrives_with_the_last_deferred_reply_is_still_the_only_one_in_hand() -> None:
    async def story() -> None:
        owner = Deferring()
        owner.answer = lambda _: None
        async with serving(owner) as (_, writer):
            writer.write(framed(b"!first one"))
            await until(lambda: len(owner.deferred) == 1)
            writer.write(framed(b"an ordinary one") + framed(b"another one"))
            await asyncio.sleep(0.01)
            owner.release(is_last=True)
            # More bytes arrive before the loop goes on with what is in the buffer.
            owner.connections[0]._take_frames()
            assert owner.frames == [b"an ordinary one"]
            await asyncio.sleep(0.01)
            assert owner.frames == [b"an ordinary one"], "it has no reply yet"

    asyncio.run(story())


def test_deferred_replies_are_given_up_with_the_connection() -> None:
    async def story() -> None:
        owner = Deferring()
        async with serving(owner) as (_, writer):
            writer.write(framed(b"!first one"))
            await until(lambda: len(owner.deferred) == 1)
            writer.close()
            await owner.gone.wait()
            assert owner.deferred == []
            owner.release(is_last=True)

    asyncio.run(story())


def test_a_peer_that_goes_away_while_its_large_frame_is_answered_is_noticed() -> None:
    async def story() -> None:
        arrived = asyncio.Event()
        owner = Owner(lambda frame: arrived.set())
        async with serving(owner) as (_, writer):
            writer.write(framed(bytes(3 * BUFFER_BYTES)))
            await arrived.wait()
            abandoned: list[bool] = []
            owner.connections[0].when_abandoned = lambda: abandoned.append(True)
            writer.close()
            await owner.gone.wait()
            assert abandoned == [True]

    asyncio.run(story())


def test_the_short_way_is_tried_only_for_its_api_keys() -> None:
    async def story() -> None:
        owner = Owner(echo)
        async with serving(owner) as (reader, writer):
            for body in (b"ordinary request", b"!short request", b"ordinary again"):
                writer.write(framed(body))
                assert await read_frame(reader) == body
            assert owner.frames == [b"ordinary request", b"ordinary again"]
            assert owner.tried_first == [(owner.connections[0], framed(b"!short request"))]

    asyncio.run(story())


def test_small_replies_to_frames_that_came_together_leave_together() -> None:
    class CountingSocket:
        def __init__(self, real: socket.socket) -> None:
            self.real = real
            self.sends = 0

        def send(self, data: bytes, flags: int) -> int:
            self.sends += 1
            return self.real.send(data, flags)

        def recv_into(self, buffer: memoryview) -> int:
            return self.real.recv_into(buffer)

        def fileno(self) -> int:
            return self.real.fileno()

        def close(self) -> None:
            self.real.close()

    async def story() -> None:
        owner = Owner(echo)
        async with serving(owner) as (reader, writer):
            writer.write(framed(b"to connect"))
            await read_frame(reader)
            connection = owner.connections[0]
            counting = CountingSocket(connection._socket)
            connection._socket = counting  # type: ignore[assignment]
            bodies = [f"request {number:03}".encode() for number in range(50)]
            writer.write(b"".join(map(framed, bodies)))
            assert [await read_frame(reader) for _ in bodies] == bodies
            assert counting.sends <= 5

    asyncio.run(story())


def test_an_owner_that_fails_loses_the_connection_and_no_more() -> None:
    async def story() -> None:
        logged: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
        owner = Owner(lambda frame: [1 / 0])  # type: ignore[list-item]
        async with serving(owner) as (reader, writer):
            writer.write(framed(b"whatever it is"))
            assert await reader.read() == b""
        assert owner.closed_count == 1
        assert isinstance(logged[0]["exception"], ZeroDivisionError)

    asyncio.run(story())


def test_replies_held_back_are_sent_although_the_last_frame_waits() -> None:
    async def story() -> None:
        owner = Owner(lambda frame: None if frame == b"wait for it" else [framed(frame)])
        async with serving(owner) as (reader, writer):
            writer.write(framed(b"answered at once") + framed(b"wait for it") + framed(b"and behind it"))
            assert await read_frame(reader) == b"answered at once"
            assert owner.frames[-1] == b"wait for it"
            owner.connections[0].reply([framed(b"here it is")])
            assert await read_frame(reader) == b"here it is"
            assert await read_frame(reader) == b"and behind it"

    asyncio.run(story())


def test_a_closed_connection_is_freed_without_the_garbage_collector() -> None:
    """Also if what answers its requests holds it, as answers do that wait for other replicas."""

    async def story() -> None:
        owner = Owner(echo)
        async with serving(owner) as (_, writer):
            await until(lambda: bool(owner.connections))
            connection = owner.connections.pop()
            connection.short_way = [connection]
            remembered = weakref.ref(connection)
            del connection
            gc.disable()
            try:
                writer.close()
                await until(lambda: remembered() is None)
            finally:
                gc.enable()

    asyncio.run(story())
