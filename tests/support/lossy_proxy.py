"""A TCP proxy that loses a request or an answer on demand, and the connection with it."""

import asyncio
from contextlib import suppress
from typing import Self


class LossyProxy:
    """`lose_request` drops the next large request; `lose_answer` passes it on and drops its answer."""

    def __init__(self, port: int, large_bytes: int = 200) -> None:
        self._target = port
        self._large_bytes = large_bytes
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.lose_request = False
        self.lose_answer = False
        self.lost = 0

    async def start(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    @property
    def address(self) -> str:
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, upstream_writer}
        answers_lost = asyncio.Event()
        tasks = [
            asyncio.ensure_future(self._requests(reader, upstream_writer, answers_lost)),
            asyncio.ensure_future(self._answers(upstream_reader, writer, answers_lost)),
        ]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for end in (writer, upstream_writer):
            self._writers.discard(end)
            end.close()
            with suppress(OSError):
                await end.wait_closed()

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers_lost: asyncio.Event
    ) -> None:
        while data := await reader.read(1 << 20):
            if len(data) >= self._large_bytes and self.lose_request:
                self.lose_request = False
                self.lost += 1
                return
            if len(data) >= self._large_bytes and self.lose_answer:
                self.lose_answer = False
                answers_lost.set()
            writer.write(data)
            await writer.drain()

    async def _answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers_lost: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 20):
                if answers_lost.is_set():
                    self.lost += 1
                    return
                writer.write(data)
                await writer.drain()
