"""A few lines of HTTP for GET /metrics; nothing else is served, and a request is read to a small limit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.broker.metrics import CONTENT_TYPE, render

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

REQUEST_BYTES_MAX = 8192
REQUEST_SECONDS_MAX = 10.0


class MetricsServer:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, which the system may have chosen."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=REQUEST_BYTES_MAX)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(request))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            # Not a request, or nobody waits for the answer any more: closing says it all.
            return
        finally:
            writer.close()

    def _answer(self, request: bytes) -> bytes:
        method, _, rest = request.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if path != b"/metrics":
            return _response("404 Not Found", b"try /metrics\n", "text/plain")
        if method != b"GET":
            return _response("405 Method Not Allowed", b"only GET\n", "text/plain")
        return _response("200 OK", render(self._broker), CONTENT_TYPE)


def _response(status: str, body: bytes, content_type: str) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
