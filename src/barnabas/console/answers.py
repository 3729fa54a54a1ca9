"""Answers of the API: JSON, streams of events, and the name of the cookie."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from starlette.responses import Response, StreamingResponse

from barnabas.console.failures import ApiError
from barnabas.console.settings import ConsoleSettings

# Pages that listen at the same time: tails and events.
STREAMS_MAX = 100
# A comment, so that a connection that is gone is noticed.
PING_SECONDS = 15.0
PING = b": still here\n\n"

Event = tuple[str, Mapping[str, Any]]
Events = AsyncGenerator[Event | None, None]

_NO_STORE = {"Cache-Control": "no-store"}


def to_json(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def json_response(content: Any, status: int = 200) -> Response:
    return Response(to_json(content), status, _NO_STORE, media_type="application/json")


def cookie_name(settings: ConsoleSettings) -> str:
    """Browsers send cookies to all ports of a host, so consoles on other ports need other names."""
    return f"barnabas_console_{settings.port}"


class Streams:
    """The pages that listen. They end when the console does."""

    def __init__(self) -> None:
        self._ending = asyncio.Event()
        self._open = 0

    def end(self) -> None:
        self._ending.set()

    def response(self, events: Events) -> StreamingResponse:
        """Server-sent events from (name, data) pairs; None says that there was nothing for a while."""
        if self._open >= STREAMS_MAX:
            text = "Too many pages are listening: close some, or try again later."
            raise ApiError(503, "TOO_MANY_STREAMS", text)
        return StreamingResponse(self._encoded(events), headers=_NO_STORE, media_type="text/event-stream")

    async def _encoded(self, events: Events) -> AsyncIterator[bytes]:
        self._open += 1
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            yield PING
            while (event := await _next_of(events, ending)) is not _OVER:
                yield PING if event is None else _written(event)
        finally:
            self._open -= 1
            ending.cancel()
            await events.aclose()


_OVER: Any = object()


async def _next_of(events: Events, ending: "asyncio.Future[Any]") -> Event | None:
    """The next event; _OVER if there is none, or if the console ends."""
    step = asyncio.ensure_future(anext(events, _OVER))
    try:
        await asyncio.wait((step, ending), return_when=asyncio.FIRST_COMPLETED)
        return step.result() if step.done() else _OVER
    finally:
        if not step.done():
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)


def _written(event: Event) -> bytes:
    name, data = event
    return f"event: {name}\ndata: {to_json(data)}\n\n".encode()


async def queued(queue: "asyncio.Queue[tuple[str, dict[str, Any]]]") -> tuple[str, dict[str, Any]] | None:
    """The next item, or None after a while without one."""
    try:
        async with asyncio.timeout(PING_SECONDS):
            return await queue.get()
    except TimeoutError:
        return None
