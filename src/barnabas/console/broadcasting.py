"""Events for the pages that listen. A page that is too slow loses the oldest ones, not the memory of the
console."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

QUEUE_MAX = 500

END = "end"
"""The name of the last event; it is not for pages."""

Item = tuple[str, dict[str, Any]]


class Broadcast:
    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[Item]] = set()

    def publish(self, name: str, data: dict[str, Any]) -> None:
        for queue in self._queues:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait((name, data))

    def end(self) -> None:
        """Nothing more will be published."""
        self.publish(END, {})

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator["asyncio.Queue[Item]"]:
        queue: asyncio.Queue[Item] = asyncio.Queue(QUEUE_MAX)
        self._queues.add(queue)
        try:
            yield queue
        finally:
            self._queues.discard(queue)
