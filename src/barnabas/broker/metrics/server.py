"""A small HTTP server: GET and HEAD of /metrics, of /health and /ready, and a page at / that says what this
is. Brokers use it, and pipelines that run.

A request is read to a small limit and within a short time, is answered, and the connection is closed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import NamedTuple, Protocol

from barnabas.broker.metrics.exposition import OPEN_METRICS_TYPE, TEXT_TYPE
from barnabas.net.addresses import why_not_bound

REQUEST_BYTES_MAX = 8192
REQUEST_SECONDS_MAX = 10.0
CONNECTIONS_MAX = 100


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]


class BadRequest(Exception):
    """Answered with its status and one sentence."""

    def __init__(self, status: HTTPStatus, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers


class Check(NamedTuple):
    """One part of the answer of /health or /ready. It fails if there is a problem; a note is only shown."""

    name: str
    problem: str | None
    note: str | None = None


# By path, such as /ready: what is checked.
Probes = Mapping[str, Callable[[], Iterable[Check]]]


class Scrape(Protocol):
    async def __call__(self, *, open_metrics: bool, gzip: bool) -> bytes:
        """All metrics as text."""


class MetricsServer:
    """`page` is the HTML of the page at /. While `is_starting`, only the probes are answered."""

    def __init__(self, scrape: Scrape, page: Callable[[], str], probes: Probes | None = None) -> None:
        self._scrape = scrape
        self._page = page
        self._probes = probes or {}
        self.is_starting = False
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system may have chosen."""
        try:
            self._server = await asyncio.start_server(self._accept, host, port, limit=REQUEST_BYTES_MAX)
        except OSError as error:
            raise OSError(error.errno, f"metrics: {why_not_bound(host, port, error)}") from error
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= CONNECTIONS_MAX:
            writer.write(_refusal(BadRequest(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections.")))
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                writer.write(await self._response(reader))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            # The peer does not send, does not read, or has gone: there is nobody to answer.
            return
        finally:
            writer.transport.abort()

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        try:
            request = _parse(await _read_head(reader))
            return await self._answer(request)
        except BadRequest as problem:
            return _refusal(problem)

    async def _answer(self, request: Request) -> bytes:
        if request.path not in ("/", "/metrics", *self._probes):
            raise BadRequest(HTTPStatus.NOT_FOUND, "There is nothing here: the metrics are at /metrics.")
        if request.method not in ("GET", "HEAD"):
            raise BadRequest(
                HTTPStatus.METHOD_NOT_ALLOWED, "Only GET and HEAD are served here.", Allow="GET, HEAD"
            )
        is_head = request.method == "HEAD"
        if request.path in self._probes:
            return _probe_answer(list(self._probes[request.path]()), is_head)
        if self.is_starting:
            raise BadRequest(
                HTTPStatus.SERVICE_UNAVAILABLE, "The broker is starting: try again.", **{"Retry-After": "1"}
            )
        if request.path == "/":
            page = self._page().encode()
            return _head(HTTPStatus.OK, "text/html; charset=utf-8", len(page)) + (b"" if is_head else page)
        return await self._metrics_answer(request, is_head)

    async def _metrics_answer(self, request: Request, is_head: bool) -> bytes:
        open_metrics = _prefers_open_metrics(request.headers.get("accept", ""))
        gzip = _quality(request.headers.get("accept-encoding", ""), "gzip") > 0
        content_type = OPEN_METRICS_TYPE if open_metrics else TEXT_TYPE
        headers = {"Vary": "Accept, Accept-Encoding", **({"Content-Encoding": "gzip"} if gzip else {})}
        if is_head:
            # Without a length: to know it, all metrics would have to be collected.
            return _head(HTTPStatus.OK, content_type, None, **headers)
        body = await self._scrape(open_metrics=open_metrics, gzip=gzip)
        return _head(HTTPStatus.OK, content_type, len(body), **headers) + body


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise BadRequest(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"The head of a request may have {REQUEST_BYTES_MAX} bytes at most.",
        ) from None


def _parse(head: bytes) -> Request:
    request_line, *lines = head.decode("latin-1").split("\r\n")
    parts = request_line.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest(HTTPStatus.BAD_REQUEST, "This is not a request of HTTP/1.1: try GET /metrics.")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return Request(parts[0], parts[1].partition("?")[0], headers)


def _quality(header: str, name: str) -> float:
    """The weight that an Accept or Accept-Encoding header gives to a name; 0 if it does not have it."""
    best = 0.0
    for item in header.split(","):
        value, *parameters = (part.strip().lower() for part in item.split(";"))
        if value == name:
            weights = [part[2:] for part in parameters if part.startswith("q=")]
            best = max(best, _number(weights[0]) if weights else 1.0)
    return best


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _prefers_open_metrics(accept: str) -> bool:
    weight = _quality(accept, "application/openmetrics-text")
    return weight > 0 and weight >= max(_quality(accept, "text/plain"), _quality(accept, "*/*"))


def _probe_answer(checks: list[Check], is_head: bool) -> bytes:
    """200 if no check fails, otherwise 503; with a JSON document that says which."""
    is_failing = any(check.problem is not None for check in checks)
    document = {
        "status": "failing" if is_failing else "ok",
        "checks": {check.name: check.problem or check.note or "ok" for check in checks},
    }
    body = (json.dumps(document) + "\n").encode()
    status = HTTPStatus.SERVICE_UNAVAILABLE if is_failing else HTTPStatus.OK
    # A probe wants the state of now.
    headers = {"Cache-Control": "no-store"}
    return _head(status, "application/json", len(body), **headers) + (b"" if is_head else body)


def _refusal(problem: BadRequest) -> bytes:
    body = f"{problem}\n".encode()
    return _head(problem.status, "text/plain; charset=utf-8", len(body), **problem.headers) + body


def _head(status: HTTPStatus, content_type: str, length: int | None, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", f"Content-Type: {content_type}", "Connection: close"]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()
