"""The live tail of a topic: new messages as they arrive, as a stream of events.

A tail has a bound on what it sends and on what it looks at in a second. A topic that is faster is shown as a
sample, with the number of messages that were left out; a tail that falls behind continues at the end. So
neither a busy topic nor a slow page makes the console's memory grow."""

import asyncio
import time
from typing import Any

from starlette.responses import Response

from barnabas.client.errors import ClosedError, ErrorCode, KafkaError
from barnabas.client.types import TopicPartition
from barnabas.console.answers import PING_SECONDS, Event, Events
from barnabas.console.calls import Call
from barnabas.console.failures import api_error
from barnabas.console.fetching import Chunk, Fetcher
from barnabas.console.messages import SELECTION_QUERY, TEXT_MAX_IN_LIST, chosen_partitions, selection_of
from barnabas.console.routing import Route
from barnabas.console.scanning import Selection

TICK_SECONDS = 0.25
ITEMS_OF_A_TICK = 50
LOOKED_AT_OF_A_TICK = 20_000
# A partition that is further behind than this continues at its end.
BEHIND_MAX = 10_000
PROBLEM_PAUSE_SECONDS = 2.0

Item = dict[str, Any]


async def tail(call: Call) -> Response:
    selection = selection_of(call, TEXT_MAX_IN_LIST)
    fetcher = Fetcher(call.workspace.admin, call.path["topic"])
    partitions = await chosen_partitions(call, fetcher)
    positions = await fetcher.ends(TopicPartition(fetcher.topic, number) for number in partitions)
    return call.streams.response(_events(Tail(fetcher, selection, positions)))


async def _events(following: "Tail") -> Events:
    last = time.monotonic()
    while True:
        pause = TICK_SECONDS
        event: Event | None = None
        try:
            items, skipped = await following.tick()
            if items or skipped:
                event = "messages", {"items": items, "skipped": skipped}
        except ClosedError:
            # The session is over.
            return
        except KafkaError as error:
            event = "problem", {"message": api_error(error).message}
            pause = PROBLEM_PAUSE_SECONDS
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                yield event
                return
        now = time.monotonic()
        if event is not None or now - last > PING_SECONDS:
            last = now
            yield event
        await asyncio.sleep(pause)


class Tail:
    """Where a tail is in each partition."""

    def __init__(self, fetcher: Fetcher, selection: Selection, positions: dict[int, int]) -> None:
        self._fetcher = fetcher
        self._selection = selection
        self.positions = positions

    async def tick(self) -> tuple[list[Item], int]:
        """New messages, at most some, and how many were left out."""
        try:
            chunks = await self._fetcher.read(self.positions, committed=self._selection.committed)
        except KafkaError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            return [], await self._go_to_ends()
        return await asyncio.to_thread(self._take, chunks)

    async def _go_to_ends(self) -> int:
        """The topic was emptied, or made again."""
        partitions = [TopicPartition(self._fetcher.topic, number) for number in self.positions]
        ends = await self._fetcher.ends(partitions)
        skipped = sum(max(0, ends[number] - at) for number, at in self.positions.items())
        self.positions = ends
        return skipped

    def _take(self, chunks: list[Chunk]) -> tuple[list[Item], int]:
        items: list[Item] = []
        looked_at = skipped = 0
        needs_look = not self._selection.filters.is_empty
        for chunk in chunks:
            for message in chunk.messages():
                looked_at += 1
                is_full = len(items) >= ITEMS_OF_A_TICK
                if looked_at > LOOKED_AT_OF_A_TICK or (is_full and not needs_look):
                    skipped += message.control is None
                    continue
                item = self._selection.item(message)
                if item is not None and is_full:
                    skipped += 1
                elif item is not None:
                    items.append(item)
            skipped += self._move(chunk)
        items.sort(key=lambda item: (item["time_ms"] or 0, item["partition"], item["offset"]))
        return items, skipped

    def _move(self, chunk: Chunk) -> int:
        """Go on after the chunk, or at the end if that is far away. Returns how many offsets were left
        out."""
        at = chunk.next_offset
        data = chunk.data
        end = data.last_stable_offset if self._selection.committed else data.high_watermark
        if end - at > BEHIND_MAX:
            self.positions[chunk.partition] = end
            return end - at
        self.positions[chunk.partition] = at
        return 0


ROUTES = (
    Route(
        "GET",
        "/api/topics/{topic}/tail",
        tail,
        "New messages as they arrive (server-sent events)",
        query=SELECTION_QUERY,
    ),
)
