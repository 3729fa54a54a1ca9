"""The event loop's selector, which polls for a moment before it sleeps.

Waking a sleeping processor takes tens of microseconds, as long as answering a request. So while events follow
each other quickly, the selector polls for the next one. When one takes longer, it sleeps at once until events
are quick again. An idle broker does not poll."""

import asyncio
import os
import selectors
from time import monotonic
from typing import TypeAlias

from barnabas.net.turn import Turn

# It polls for this long, but only if the last wait was shorter than the second time.
SPIN_SECONDS = 120e-6
QUICK_SECONDS = 150e-6

Ready: TypeAlias = list[tuple[selectors.SelectorKey, int]]


class SpinningSelector(selectors.DefaultSelector):
    def __init__(self, *, spins: bool = True) -> None:
        super().__init__()
        self.may_spin = spins
        self._last_wait = QUICK_SECONDS
        self.spins = 0
        # Time spent waiting for events, asleep or polling.
        self.idle_seconds = 0.0
        self.turn = Turn()

    def select(self, timeout: float | None = None) -> Ready:
        self.turn.request_seconds = 0.0
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        began = monotonic()
        ready: Ready = []
        if self.may_spin and self._last_wait < QUICK_SECONDS:
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
    def turn(self) -> Turn:
        """What the connections of this loop share."""
        return self._spinning_selector.turn

    @property
    def idle_seconds(self) -> float:
        return self._spinning_selector.idle_seconds

    def share_processors(self, loops: int) -> None:
        """Spin only if each of this many busy loops on this machine can have a processor, and their clients
        one more."""
        self._spinning_selector.may_spin = (os.cpu_count() or 1) > loops


def new_event_loop() -> SpinningEventLoop:
    """A loop for a broker. With one processor it does not spin: its clients need the processor."""
    loop = SpinningEventLoop(spins=True)
    loop.share_processors(1)
    return loop
