"""Answers of the API: JSON, streams of events, and the name of the cookie."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import Response, StreamingResponse

from barnabas.console.failures import ApiError
from barnabas.console.settings import ConsoleSettings

# Pages that listen at the same time: tails and events.
STREAMS_MAX = 100
# A comment, so that a connection that is gone is noticed.
PING_SECONDS = 15.0
PING = b": still here\n\n"

_NO_STORE = {"Cache-Control": "no-store"}


def to_json(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def json_response(content: Any, status: int = 200) -> Response:
    return Response(to_json(content), status, _NO_STORE, media_type="application/json")


def cookie_name(settings: ConsoleSettings) -> str:
    """Browsers send cookies to all ports of a host, so consoles on other ports need other names."""
    return f"barnabas_console_{settings.port}"


class _Streams:
    open = 0


def event_stream(events: AsyncIterator[tuple[str, Mapping[str, Any]] | None]) -> StreamingResponse:
    """Server-sent events from (name, data) pairs; None says that there was nothing for a while."""
    if _Streams.open >= STREAMS_MAX:
        raise ApiError(
            503, "TOO_MANY_STREAMS", "Too many pages are listening: close some, or try again later."
        )
    return StreamingResponse(_encoded(events), headers=_NO_STORE, media_type="text/event-stream")


async def _encoded(events: AsyncIterator[tuple[str, Mapping[str, Any]] | None]) -> AsyncIterator[bytes]:
    _Streams.open += 1
    try:
        yield PING
        async for event in events:
            if event is None:
                yield PING
            else:
                name, data = event
                yield f"event: {name}\ndata: {to_json(data)}\n\n".encode()
    finally:
        _Streams.open -= 1


async def queued(queue: "asyncio.Queue[tuple[str, dict[str, Any]]]") -> tuple[str, dict[str, Any]] | None:
    """The next item, or None after a while without one."""
    try:
        async with asyncio.timeout(PING_SECONDS):
            return await queue.get()
    except TimeoutError:
        return None
