"""Peers that read a file range slowly, disconnect in the middle of it, or are gone before it is sent: no file
stays open longer than it is read. Real sockets, real files."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.accepting import accepting
from tests.support.logs import LogBench, open_files_below

from barnabas.config.topic import TopicConfig
from barnabas.log.reading import LogSlice
from barnabas.net.connection import Connection

# More than fits into the buffers of both sockets.
BATCHES, BATCH_BYTES = 32, 1 << 20
CONFIG = TopicConfig(file_delete_delay_ms=0, max_message_bytes=2 * BATCH_BYTES)


class FetchOwner:
    """Answers every frame with the whole log, at once or when reply() is called."""

    def __init__(self, bench: LogBench, *, answers_at_once: bool = True) -> None:
        self._bench = bench
        self._answers_at_once = answers_at_once
        self.connections: list[Connection] = []
        self.frames = 0
        self.closed_count = 0

    def opened(self, connection: Connection) -> None:
        self.connections.append(connection)

    keys_answered_first: frozenset[int] = frozenset()

    def answer_first(self, connection: Connection, arrived: memoryview) -> tuple[int, bytes]:
        return 0, b""

    def frame(self, connection: Connection, frame: memoryview) -> None:
        self.frames += 1
        if self._answers_at_once:
            self.reply(connection)

    def reply(self, connection: Connection) -> None:
        piece = whole(self._bench)
        connection.reply([struct.pack(">i", piece.size), piece])  # type: ignore[list-item]

    def refused(self, connection: Connection, reason: str) -> None:
        raise AssertionError(reason)

    def closed(self, connection: Connection) -> None:
        self.closed_count += 1


def whole(bench: LogBench) -> LogSlice:
    end = bench.log.log_end_offset
    return bench.log.read(bench.log.log_start_offset, 1 << 30, upper_offset=end, at_least_one=True)


@pytest.fixture
def bench(tmp_path: Path) -> LogBench:
    bench = LogBench(tmp_path, CONFIG)
    for _ in range(BATCHES):
        bench.append(bytes(BATCH_BYTES))
    return bench


@asynccontextmanager
async def fetching(owner: FetchOwner) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A peer whose request has arrived."""
    loop = asyncio.get_running_loop()
    acceptor = await accepting(lambda: Connection(owner, loop, 1 << 20))
    reader, writer = await asyncio.open_connection("127.0.0.1", acceptor.port, limit=1 << 16)
    try:
        writer.write(struct.pack(">i", 8) + bytes(8))
        await until(lambda: owner.frames > 0)
        yield reader, writer
    finally:
        writer.transport.abort()
        acceptor.close()


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


def delete_all(bench: LogBench) -> None:
    bench.log.roll()
    bench.log.delete_records_before(bench.log.log_end_offset)
    bench.log.apply_retention(bench.clock.now_ms())
    bench.trash.empty()
    bench.log.release_idle()
    bench.log.release_idle()


def test_a_deleted_file_is_open_until_a_slow_peer_has_all_of_it(bench: LogBench, tmp_path: Path) -> None:
    async def story() -> None:
        async with fetching(FetchOwner(bench)) as (reader, _):
            segment = bench.log.segments[0]
            assert segment.readers.count == 1
            delete_all(bench)
            assert [name.endswith(".deleted (deleted)") for name in open_files_below(tmp_path)] == [True]
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            assert size > BATCHES * BATCH_BYTES
            assert len(await reader.readexactly(size)) == size
            await until(lambda: segment.readers.count == 0)
            assert open_files_below(tmp_path) == []

    asyncio.run(story())


def test_a_peer_that_goes_away_in_the_middle_leaves_no_file_open(bench: LogBench, tmp_path: Path) -> None:
    async def story() -> None:
        owner = FetchOwner(bench)
        async with fetching(owner) as (reader, writer):
            await reader.readexactly(BATCH_BYTES)
            segment = bench.log.segments[0]
            delete_all(bench)
            assert (segment.readers.count, len(open_files_below(tmp_path))) == (1, 1)
            writer.transport.abort()
            await until(lambda: owner.closed_count == 1)
            assert (segment.readers.count, open_files_below(tmp_path)) == (0, [])

    asyncio.run(story())


def test_an_answer_to_a_peer_that_is_gone_leaves_no_file_open(bench: LogBench, tmp_path: Path) -> None:
    async def story() -> None:
        owner = FetchOwner(bench, answers_at_once=False)
        async with fetching(owner) as (_, writer):
            writer.transport.abort()
            await until(lambda: owner.closed_count == 1)
            owner.reply(owner.connections[0])
            segment = bench.log.segments[0]
            delete_all(bench)
            assert (segment.readers.count, open_files_below(tmp_path)) == (0, [])

    asyncio.run(story())
