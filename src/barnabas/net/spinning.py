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
    def __init__(self, *, spins: bool = True) -> None:
        super().__init__()
        self._quick_seconds = QUICK_SECONDS if spins else 0.0
        self._last_wait = QUICK_SECONDS
        self.spins = 0
        # Time spent waiting for events, whether asleep or looking.
        self.idle_seconds = 0.0

    def select(self, timeout: float | None = None) -> Ready:
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        began = monotonic()
        ready: Ready = []
        if self._last_wait < self._quick_seconds:
            self.spins += 1
            end = began + (SPIN_SECONDS if timeout is None else min(SPIN_SECONDS, timeout))
            while not (ready := super().select(0)) and monotonic() < end:
                pass
        if not ready:
            ready = super().select(timeout)
        self._last_wait = monotonic() - began
        self.idle_seconds += self._last_wait
        return ready


class SpinningEventLoop(asyncio.SelectorEventLoop):
    """A loop that knows how long it has waited for events."""

    def __init__(self, *, spins: bool) -> None:
        self.started_at = monotonic()
        self._spinning_selector = SpinningSelector(spins=spins)
        super().__init__(self._spinning_selector)

    @property
    def idle_seconds(self) -> float:
        return self._spinning_selector.idle_seconds


def new_event_loop() -> SpinningEventLoop:
    """A loop for a broker. With one processor it does not spin: its clients need the processor."""
    return SpinningEventLoop(spins=(os.cpu_count() or 1) > 1)
