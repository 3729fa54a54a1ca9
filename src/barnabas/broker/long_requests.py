"""Requests with very many array elements are answered one at a time, in the order in which they came.

As objects, the elements of a request and of its answer take far more memory than its frame. The event loop is
one thread, so two long requests at once would not be answered sooner: they would only take twice the memory.

The garbage collector is paused meanwhile. It would look at all objects of the request several times, for up
to 100 ms each, and find nothing: messages have no cycles. After each request it looks for what errors and
other objects have left behind.

Owned by the event loop."""

from __future__ import annotations

import asyncio
import gc
from collections import deque

# A long request takes about a second of work. One that takes this long waits for something, such as a
# controller that is not available; then it no longer keeps the next one waiting.
ALONE_SECONDS_MAX = 10.0
# The objects that the collector has not looked at yet, or once.
YOUNG_GENERATIONS = 1


class LongRequests:
    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._admitted: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_collector_paused = False

    def enter(self) -> asyncio.Future[None]:
        """A place at the end of the queue, which is done when the request is admitted: at once if no other
        request is being answered."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._admit_next()
        return place

    def leave(self, place: asyncio.Future[None]) -> None:
        """The request is answered, or need not be. This may be called twice."""
        place.cancel()
        if place is self._admitted:
            self._admitted = None
            if self._timer is not None:
                self._timer.cancel()
            self._resume_collector()
            self._admit_next()

    def _admit_next(self) -> None:
        while self._admitted is None and self._waiting:
            place = self._waiting.popleft()
            # Not if it is cancelled.
            if not place.done():
                self._admitted = place
                self._timer = place.get_loop().call_later(ALONE_SECONDS_MAX, self.leave, place)
                self._pause_collector()
                place.set_result(None)

    def _pause_collector(self) -> None:
        self._is_collector_paused = gc.isenabled()
        gc.disable()

    def _resume_collector(self) -> None:
        if self._is_collector_paused:
            gc.enable()
            gc.collect(YOUNG_GENERATIONS)
