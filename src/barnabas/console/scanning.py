"""Finds messages: forward from an offset, or backward from one, in several partitions at once, a page at a
time.

Each partition has a lane. A scan ends when there are enough matches, when the lanes are at their ends, or
when it has looked at as much as one request may cost. The cursor says where each lane stopped, so that the
next request can go on from there. Messages of several partitions are ordered by time, but never against the
order of a partition."""

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from barnabas.console.decoding import Decoder
from barnabas.console.fetching import Chunk, Fetcher, Message
from barnabas.console.filters import Filters

SCANNED_MAX = 200_000
SCANNED_BYTES_MAX = 128 << 20
SECONDS_MAX = 8.0
# A backward scan reads this many offsets at first, and more each time.
WINDOW_MAX = 20_000
LOOKS_AT_CLOCK = 256
# Each of them may answer with a chunk at the same time.
LANES_AT_ONCE = 64
MATCHES_MIN = 5

Item = dict[str, Any]


class Selection(NamedTuple):
    """Which messages a request wants to see, and how."""

    decoder: Decoder
    filters: Filters
    committed: bool
    with_control: bool
    text_max: int

    def item(self, message: Message) -> Item | None:
        """The message for the page; None if it was not selected."""
        if message.control is not None:
            return self._control(message) if self.with_control and self.filters.is_empty else None
        if self.committed and message.transaction == "aborted":
            return None
        if not self.filters.is_empty:
            texts = self.decoder.plain_texts(message.key, message.value)
            if texts is not None and not self.filters.may_match(texts):
                return None
        key, value = self.decoder.key(message.key), self.decoder.value(message.value)
        headers = self.decoder.headers(message.headers)
        if not self.filters.is_empty and not self.filters.matches(key, value, headers):
            return None
        return message.facts() | {
            "key": key.item(self.text_max),
            "value": value.item(self.text_max),
            "headers": headers,
        }

    def _control(self, message: Message) -> Item:
        nothing = {
            "as": "control",
            "text": None,
            "json": None,
            "size": 0,
            "is_null": False,
            "truncated": False,
        }
        return message.facts() | {"key": nothing, "value": nothing, "headers": []}


class Page(NamedTuple):
    items: list[Item]
    positions: dict[int, int]
    at_end: bool
    scanned: int
    stopped_by: str


@dataclass
class Lane:
    """One partition: the range that is left, and the matches so far, in the order of the scan."""

    partition: int
    low: int
    high: int
    matches: "deque[Item]" = field(default_factory=deque)
    # A backward scan reads [window, high) forward from `at`, and keeps the matches of that window here.
    window: int = -1
    window_size: int = 0
    at: int = -1
    in_window: "deque[Item]" = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.first_low, self.first_high = self.low, self.high

    def moved_to(self, position: int, *, backward: bool) -> "Lane":
        """The lane of the next page, which begins at this position."""
        bounds = (self.first_low, position) if backward else (position, self.first_high)
        return Lane(self.partition, *bounds)

    @property
    def is_at_end(self) -> bool:
        return self.low >= self.high


class Budget:
    def __init__(self) -> None:
        self.scanned = 0
        self._bytes = 0
        self._ends = time.monotonic() + SECONDS_MAX

    def spend(self, message: Message) -> bool:
        """Count a message. Returns whether there may be no more; the clock is looked at now and then."""
        self.scanned += 1
        self._bytes += message.size
        return self.scanned % LOOKS_AT_CLOCK == 0 and self.is_spent

    @property
    def is_spent(self) -> bool:
        return (
            self.scanned >= SCANNED_MAX or self._bytes >= SCANNED_BYTES_MAX or time.monotonic() >= self._ends
        )


async def scan_forward(fetcher: Fetcher, lanes: list[Lane], selection: Selection, limit: int) -> Page:
    """The next `limit` messages from `low` of each lane on."""
    budget, room = Budget(), _room(limit, lanes)
    while (active := _active(lanes, room)) and not budget.is_spent:
        offsets = {number: lane.low for number, lane in active.items()}
        for chunk in await fetcher.read(offsets, committed=selection.committed):
            await asyncio.to_thread(_take_forward, active[chunk.partition], chunk, selection, (room, budget))
    merged = heapq.merge(*(lane.matches for lane in lanes), key=_time)
    items = [item for item, _ in zip(merged, range(limit), strict=False)]
    left = _first_left(lanes, items)
    positions = {lane.partition: left.get(lane.partition, lane.low) for lane in lanes}
    return _page(items, positions, lanes, bool(left), budget)


def _room(limit: int, lanes: list[Lane]) -> int:
    """How many matches a lane may have. With very many partitions there are fewer than an exact order by time
    would need."""
    return limit if len(lanes) <= LANES_AT_ONCE else max(MATCHES_MIN, limit * LANES_AT_ONCE // len(lanes))


def _active(lanes: list[Lane], room: int) -> dict[int, Lane]:
    """The lanes that are read next: some of those that can have more matches."""
    open_lanes = (lane for lane in lanes if not lane.is_at_end and len(lane.matches) < room)
    return {lane.partition: lane for lane in islice(open_lanes, LANES_AT_ONCE)}


def _take_forward(lane: Lane, chunk: Chunk, selection: Selection, bounds: tuple[int, Budget]) -> None:
    limit, budget = bounds
    if not chunk.data.records:
        # Nothing more may be read: the last stable offset, or an end that has moved.
        lane.low = lane.high
        return
    for message in chunk.messages():
        if message.offset >= lane.high:
            break
        is_spent = budget.spend(message)
        item = selection.item(message)
        if item is not None:
            lane.matches.append(item)
        lane.low = message.offset + 1
        if len(lane.matches) >= limit or is_spent:
            return
    # Compaction may have removed the last records.
    lane.low = max(lane.low, min(chunk.next_offset, lane.high))


async def scan_backward(fetcher: Fetcher, lanes: list[Lane], selection: Selection, limit: int) -> Page:
    """The last `limit` messages before `high` of each lane, the newest first."""
    budget, room = Budget(), _room(limit, lanes)
    while (active := _active(lanes, room)) and not budget.is_spent:
        for lane in active.values():
            _open_window(lane, room, WINDOW_MAX // len(active))
        offsets = {number: lane.at for number, lane in active.items()}
        for chunk in await fetcher.read(offsets, committed=selection.committed):
            await asyncio.to_thread(_take_backward, active[chunk.partition], chunk, selection, (room, budget))
    merged = heapq.merge(*(lane.matches for lane in lanes), key=lambda item: -_time(item))
    items = [item for item, _ in zip(merged, range(limit), strict=False)]
    left = {number: offset + 1 for number, offset in _first_left(lanes, items).items()}
    positions = {lane.partition: left.get(lane.partition, lane.high) for lane in lanes}
    return _page(items, positions, lanes, bool(left), budget)


def _open_window(lane: Lane, room: int, size_max: int) -> None:
    """Begin the next window, if the last one is done. Each is larger than the one before: matches are rare
    here. All windows together are much smaller than what a request may look at, so that each request gets
    further."""
    if lane.at < 0:
        lane.window_size = min(lane.window_size * 4 or room, max(size_max, room))
        lane.window = lane.at = max(lane.low, lane.high - lane.window_size)
        lane.in_window = deque(maxlen=room)


def _take_backward(lane: Lane, chunk: Chunk, selection: Selection, bounds: tuple[int, Budget]) -> None:
    limit, budget = bounds
    for message in chunk.messages():
        if message.offset >= lane.high:
            break
        budget.spend(message)
        item = selection.item(message)
        if item is not None:
            lane.in_window.append(item)
        lane.at = message.offset + 1
    lane.at = max(lane.at, chunk.next_offset)
    if lane.at < lane.high and chunk.data.records:
        return
    is_full = len(lane.in_window) == limit
    oldest = lane.in_window[0]["offset"] if is_full else lane.window
    room = limit - len(lane.matches)
    newest_first = list(reversed(lane.in_window))
    if len(newest_first) > room:
        newest_first = newest_first[:room]
        oldest = newest_first[-1]["offset"]
    lane.matches.extend(newest_first)
    lane.high = oldest
    lane.at = -1


def _time(item: Item) -> int:
    return item["time_ms"] or 0


def _first_left(lanes: Iterable[Lane], items: list[Item]) -> dict[int, int]:
    """The offset of the first match of each lane that is not on the page."""
    taken: dict[int, int] = {}
    for item in items:
        taken[item["partition"]] = taken.get(item["partition"], 0) + 1
    left = {}
    for lane in lanes:
        count = taken.get(lane.partition, 0)
        if count < len(lane.matches):
            left[lane.partition] = lane.matches[count]["offset"]
    return left


def _page(
    items: list[Item], positions: dict[int, int], lanes: list[Lane], has_more: bool, budget: Budget
) -> Page:
    at_end = not has_more and all(lane.is_at_end for lane in lanes)
    if at_end:
        stopped_by = "end"
    else:
        stopped_by = "scan_limit" if budget.is_spent else "limit"
    return Page(items, positions, at_end, budget.scanned, stopped_by)
