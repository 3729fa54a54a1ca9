"""Limits on the bytes of replication per second, for the replicas that a topic names.

The rate is measured over several windows, as Kafka does: a second that was quiet may be used up later. What
is over the limit waits; nothing is refused."""

from collections import deque

from barnabas.clock import Clock
from barnabas.config.topic import LONG_MAX

ALL = "*"


class RateLimit:
    """`bytes_per_second` may be changed at any time."""

    def __init__(self, clock: Clock, windows: int = 11, window_seconds: float = 1.0) -> None:
        self.bytes_per_second: int = LONG_MAX
        self._clock = clock
        self._windows = windows
        self._window_seconds = window_seconds
        # (start, bytes) of the windows with bytes, the newest last.
        self._counts: deque[tuple[float, int]] = deque()

    @property
    def is_set(self) -> bool:
        return self.bytes_per_second < LONG_MAX

    def record(self, size: int) -> None:
        now = self._clock.monotonic()
        if self._counts and now - self._counts[-1][0] < self._window_seconds:
            start, count = self._counts.pop()
            self._counts.append((start, count + size))
        else:
            self._counts.append((now, size))

    def is_exceeded(self) -> bool:
        if not self.is_set:
            return False
        now = self._clock.monotonic()
        while self._counts and now - self._counts[0][0] >= self._windows * self._window_seconds:
            self._counts.popleft()
        if not self._counts:
            return False
        # At first, the windows that have not been yet count as quiet ones.
        quiet_seconds = (self._windows - 1) * self._window_seconds
        seconds = max(now - self._counts[0][0], quiet_seconds)
        total = sum(size for _, size in self._counts)
        return total / seconds > self.bytes_per_second


def names_replica(replicas: tuple[str, ...], partition: int, broker_id: int) -> bool:
    """Whether a setting such as follower.replication.throttled.replicas names this replica: by "*", or by an
    item "partition:broker"."""
    return ALL in replicas or f"{partition}:{broker_id}" in replicas
