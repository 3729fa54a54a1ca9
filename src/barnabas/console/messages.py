"""Messages of a topic: pages of them, from an offset, a time or an end, with filters."""

import base64
import binascii
import json
from typing import Any

from barnabas.client.admin import OffsetSpec
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.types import TopicPartition
from barnabas.console.calls import Call
from barnabas.console.decoding import FORMATS, Avro, Decoder
from barnabas.console.failures import bad_request
from barnabas.console.fetching import Fetcher
from barnabas.console.filters import FILTER_QUERY, Filters
from barnabas.console.routing import Route
from barnabas.console.scanning import Lane, Selection, scan_backward, scan_forward
from barnabas.console.shapes import Choice, Flag, Nullable, Shape, Text, Whole

Item = dict[str, Any]

LIMIT_MAX = 500
# Texts in a list are cut; a single message is shown as a whole.
TEXT_MAX_IN_LIST = 16 << 10
TEXT_MAX_ALONE = 4 << 20
SCHEMA_LENGTH_MAX = 100_000
OLDER, NEWER = "older", "newer"

SELECTION_QUERY: dict[str, Shape] = {
    "partition": Text("all, or numbers with commas between them", default="all"),
    **FILTER_QUERY,
    "key_as": Choice(*FORMATS, default="auto"),
    "value_as": Choice(*FORMATS, default="auto"),
    "schema": Text("an Avro schema, instead of the registry's", default="", longest=SCHEMA_LENGTH_MAX),
    "isolation": Choice("uncommitted", "committed", default="uncommitted"),
    "control": Flag("also control records, which end transactions"),
}
FROM_QUERY: dict[str, Shape] = {
    "from": Choice("beginning", "end", "offset", "time", default="end"),
    "offset": Nullable(Whole("for from=offset")),
    "time_ms": Nullable(Whole("for from=time")),
    "direction": Choice(NEWER, OLDER, doc="older from the end, newer otherwise", default=""),
    "cursor": Text("where the page before ended", default="", longest=100_000),
}
LIMIT_QUERY: dict[str, Shape] = {"limit": Whole("messages on a page", default=50, least=1, most=LIMIT_MAX)}


async def messages(call: Call) -> Item:
    limit = call.query["limit"]
    selection = selection_of(call, TEXT_MAX_ALONE if limit == 1 else TEXT_MAX_IN_LIST)
    fetcher = Fetcher(call.workspace.admin, call.path["topic"])
    partitions = await chosen_partitions(call, fetcher)
    direction, lanes = await lanes_of(call, partitions)
    scan = scan_backward if direction == OLDER else scan_forward
    page = await scan(fetcher, lanes, selection, limit)
    return {
        "items": page.items,
        "cursor": written_cursor(direction, page.positions),
        "direction": direction,
        "at_end": page.at_end,
        "scanned": page.scanned,
        "stopped_by": page.stopped_by,
        "unavailable": fetcher.without_leader,
    }


def selection_of(call: Call, text_max: int) -> Selection:
    query, topic = call.query, call.path["topic"]
    masks = call.settings.masks.of(topic)
    if query["schema"] and masks.has_paths:
        raise bad_request("This topic has masks, so its values cannot be decoded with a schema of your own.")
    avro = Avro(call.registry, query["schema"] or None)
    decoder = Decoder(query["key_as"], query["value_as"], avro, masks)
    return Selection(decoder, Filters(query), query["isolation"] == "committed", query["control"], text_max)


async def chosen_partitions(call: Call, fetcher: Fetcher) -> list[int]:
    """The partitions that the request names, without those that cannot be read because they have no
    leader."""
    chosen = _named_partitions(call.query["partition"], await fetcher.open())
    readable = [number for number in chosen if number not in fetcher.without_leader]
    if chosen and not readable:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "these partitions have no leader now")
    return readable


def _named_partitions(text: str, existing: list[int]) -> list[int]:
    if text == "all":
        return existing
    numbers = text.split(",")
    if not all(number.strip().isdecimal() for number in numbers):
        raise bad_request("partition must be `all`, or numbers with commas between them.")
    chosen = sorted({int(number) for number in numbers})
    for number in chosen:
        if number not in existing:
            raise bad_request(f"The topic has no partition {number}.")
    return chosen


async def lanes_of(call: Call, partitions: list[int]) -> tuple[str, list[Lane]]:
    """The direction, and the range of each partition that is to be read."""
    query, topic = call.query, call.path["topic"]
    admin = call.workspace.admin
    asked = [TopicPartition(topic, number) for number in partitions]
    starts = await admin.list_offsets(dict.fromkeys(asked, OffsetSpec.EARLIEST))
    ends = await admin.list_offsets(dict.fromkeys(asked, OffsetSpec.LATEST))
    low = {each.partition: starts[each].offset for each in asked}
    high = {each.partition: max(ends[each].offset, low[each.partition]) for each in asked}
    if query["cursor"]:
        direction, positions = read_cursor(query["cursor"])
    else:
        direction = query["direction"] or (OLDER if query["from"] == "end" else NEWER)
        positions = await _positions(call, asked, low, high)
        if direction == OLDER and query["from"] == "offset":
            positions = {number: offset + 1 for number, offset in positions.items()}
    lanes = []
    for number in partitions:
        at = min(max(positions.get(number, low[number]), low[number]), high[number])
        bounds = (low[number], at) if direction == OLDER else (at, high[number])
        lanes.append(Lane(number, *bounds))
    return direction, lanes


async def _positions(
    call: Call, asked: list[TopicPartition], low: dict[int, int], high: dict[int, int]
) -> dict[int, int]:
    query = call.query
    if query["from"] == "beginning":
        return low
    if query["from"] == "end":
        return high
    if query["from"] == "offset":
        if query["offset"] is None:
            raise bad_request("from=offset needs an offset.")
        return dict.fromkeys(low, query["offset"])
    if query["time_ms"] is None:
        raise bad_request("from=time needs time_ms, in milliseconds since 1970.")
    found = await call.workspace.admin.list_offsets(dict.fromkeys(asked, query["time_ms"]))
    # If there is no message since then, begin at the end.
    return {
        each.partition: at.offset if at.offset >= 0 else high[each.partition] for each, at in found.items()
    }


def written_cursor(direction: str, positions: dict[int, int]) -> str:
    text = json.dumps([direction, list(positions.items())], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(text: str) -> tuple[str, dict[int, int]]:
    try:
        direction, pairs = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        positions = {int(number): int(offset) for number, offset in pairs}
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise bad_request("The cursor is not one of this console.") from None
    if direction not in (OLDER, NEWER):
        raise bad_request("The cursor is not one of this console.")
    return direction, positions


ROUTES = (
    Route(
        "GET",
        "/api/topics/{topic}/messages",
        messages,
        "A page of messages",
        query={**FROM_QUERY, **LIMIT_QUERY, **SELECTION_QUERY},
    ),
)
