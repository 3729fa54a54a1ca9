"""The event loop's selector, which looks again for a moment before it sleeps.

To wake a sleeping processor takes tens of microseconds, as long as the answer to a request does. So while
events follow each other quickly, the next one is awaited by looking; as soon as one is long in coming, the
selector sleeps at once until they are quick again. An idle broker does not spin."""

import asyncio
import os
import selectors
from time import monotonic
from typing import TypeAlias

# So long it looks, and so short must the last wait have been for it to look at all.
SPIN_SECONDS = 120e-6
QUICK_SECONDS = 150e-6

Ready: TypeAlias = list[tuple[selectors.SelectorKey, int]]


class SpinningSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self._last_wait = QUICK_SECONDS
        self.spins = 0

    def select(self, timeout: float | None = None) -> Ready:
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        began = monotonic()
        ready: Ready = []
        if self._last_wait < QUICK_SECONDS:
            self.spins += 1
            end = began + (SPIN_SECONDS if timeout is None else min(SPIN_SECONDS, timeout))
            while not (ready := super().select(0)) and monotonic() < end:
                pass
        if not ready:
            ready = super().select(timeout)
        self._last_wait = monotonic() - began
        return ready


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop for a broker; with one processor the client that is awaited needs it."""
    if (os.cpu_count() or 1) < 2:
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(SpinningSelector())
