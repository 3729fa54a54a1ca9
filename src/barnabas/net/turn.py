"""The time that the connections of one event loop share in one turn of it.

However many peers are busy, a turn answers requests for a limited time. Connections that have requests left
then wait in a queue, first come, first served. So a heartbeat or an ISR change is never late because many
producers are busy, and no peer keeps another one from its turn."""

import asyncio
from collections import deque
from collections.abc import Callable

# One turn of the loop answers requests for about this long.
TURN_SECONDS_MAX = 0.01


class Turn:
    """`request_seconds` is what connections have used in this turn; each adds to it. The loop of a broker
    (spinning.py) sets it to 0 at the beginning of a turn."""

    def __init__(self) -> None:
        self.request_seconds = 0.0
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_scheduled = False

    @property
    def seconds_left(self) -> float:
        return TURN_SECONDS_MAX - self.request_seconds

    def wait(self, loop: asyncio.AbstractEventLoop, go_on: Callable[[], None]) -> None:
        """Call `go_on` in a later turn, after those that wait already."""
        self._waiting.append(go_on)
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._serve_waiting, loop)

    def _serve_waiting(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            for _ in range(len(self._waiting)):
                if self.seconds_left <= 0:
                    break
                self._waiting.popleft()()
        finally:
            # Also after a defect in one of the calls: the others must not wait for ever.
            self._is_scheduled = bool(self._waiting)
            if self._is_scheduled:
                loop.call_soon(self._serve_waiting, loop)


class UnlimitedTurn(Turn):
    """For other loops than a broker's: each connection has the whole time of each turn."""

    @property
    def seconds_left(self) -> float:
        return TURN_SECONDS_MAX

    def wait(self, loop: asyncio.AbstractEventLoop, go_on: Callable[[], None]) -> None:
        loop.call_soon(go_on)
