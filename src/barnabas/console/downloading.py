"""Messages as a file: JSON lines or CSV, streamed page by page."""

import csv
import io
import re
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response, StreamingResponse

from barnabas.client.errors import KafkaError
from barnabas.console.answers import to_json
from barnabas.console.calls import Call
from barnabas.console.failures import api_error
from barnabas.console.fetching import Fetcher
from barnabas.console.messages import (
    FROM_QUERY,
    LIMIT_MAX,
    OLDER,
    SELECTION_QUERY,
    TEXT_MAX_ALONE,
    chosen_partitions,
    lanes_of,
    selection_of,
)
from barnabas.console.routing import Route
from barnabas.console.scanning import Lane, Selection, scan_backward, scan_forward
from barnabas.console.shapes import Choice, Whole

Item = dict[str, Any]

DOWNLOAD_MAX = 1_000_000
SECONDS_MAX = 600.0
COLUMNS = ("partition", "offset", "time", "key", "value", "headers", "transaction")
_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


async def download(call: Call) -> Response:
    selection = selection_of(call, TEXT_MAX_ALONE)
    fetcher = Fetcher(call.workspace.admin, call.path["topic"])
    partitions = await chosen_partitions(call, fetcher)
    direction, lanes = await lanes_of(call, partitions)
    kind = call.query["format"]
    name = re.sub(r"[^A-Za-z0-9._-]", "_", fetcher.topic)[:100]
    return StreamingResponse(
        _lines(fetcher, selection, (direction, lanes), (kind, call.query["limit"])),
        media_type=_TYPES[kind],
        headers={"Cache-Control": "no-store", "Content-Disposition": f'attachment; filename="{name}.{kind}"'},
    )


async def _lines(
    fetcher: Fetcher, selection: Selection, where: tuple[str, list[Lane]], wanted: tuple[str, int]
) -> AsyncIterator[bytes]:
    (direction, lanes), (kind, left) = where, wanted
    write: Callable[[Item], str] = _csv_line if kind == "csv" else _json_line
    if kind == "csv":
        yield _csv_row(COLUMNS).encode()
    ends = time.monotonic() + SECONDS_MAX
    while left > 0 and time.monotonic() < ends:
        try:
            page = await (scan_backward if direction == OLDER else scan_forward)(
                fetcher, lanes, selection, min(left, LIMIT_MAX)
            )
        except KafkaError as error:
            # The status is sent already: the last line says that the file is not complete.
            yield f"# incomplete: {api_error(error).message}\n".encode()
            return
        left -= len(page.items)
        yield "".join(map(write, page.items)).encode()
        if page.at_end:
            return
        backward = direction == OLDER
        lanes = [lane.moved_to(page.positions[lane.partition], backward=backward) for lane in lanes]


def _json_line(item: Item) -> str:
    return to_json(item) + "\n"


def _csv_line(item: Item) -> str:
    moment = item["time_ms"]
    when = (
        ""
        if moment is None
        else datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec="milliseconds")
    )
    headers = {header["name"]: header["text"] for header in item["headers"]}
    return _csv_row(
        (
            item["partition"],
            item["offset"],
            when,
            _cell(item["key"]["text"]),
            _cell(item["value"]["text"]),
            to_json(headers) if headers else "",
            item["transaction"],
        )
    )


def _cell(text: str | None) -> str:
    """Spreadsheets run what begins with these characters; a quote before it stops that."""
    if text is None:
        return ""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _csv_row(values: tuple[Any, ...]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(values)
    return out.getvalue()


ROUTES = (
    Route(
        "GET",
        "/api/topics/{topic}/download",
        download,
        "Messages as a file",
        query={
            **FROM_QUERY,
            "limit": Whole("how many at most", default=10_000, least=1, most=DOWNLOAD_MAX),
            "format": Choice("jsonl", "csv", default="jsonl"),
            **SELECTION_QUERY,
        },
    ),
)
