"""How much was used in the last seconds, and how long somebody who used too much has to wait. Pure.

Times are milliseconds of a clock that never goes back; the caller passes them in. The arithmetic is Kafka's,
so that clients are throttled for the same times: a rate over some windows for bytes, request time and
connections, a bucket of tokens for changes of the metadata."""

from __future__ import annotations

import math
from collections import deque


class Windows:
    """How many windows a rate is measured over, and how long each is."""

    __slots__ = ("count", "milliseconds")

    def __init__(self, count: int = 11, seconds: int = 1) -> None:
        self.count = count
        self.milliseconds = seconds * 1000


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, start_ms: int) -> None:
        self.start_ms = self.last_ms = start_ms
        self.value = 0.0


class Rate:
    """A sum over the last windows, per second.

    A client that has just begun is judged as if it had been quiet for all windows but the current one:
    otherwise its first request would always be too much."""

    __slots__ = ("_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: deque[_Sample] = deque()

    def record(self, value: float, now_ms: int) -> None:
        self._forget(now_ms)
        samples = self._samples
        if not samples or now_ms - samples[-1].start_ms >= self._windows.milliseconds:
            samples.append(_Sample(now_ms))
        sample = samples[-1]
        sample.value += value
        sample.last_ms = max(sample.last_ms, now_ms)

    def measure(self, now_ms: int) -> float:
        """What was recorded per second."""
        self._forget(now_ms)
        if not self._samples:
            return 0.0
        return sum(sample.value for sample in self._samples) / (self.elapsed_ms(now_ms) / 1000)

    def elapsed_ms(self, now_ms: int) -> int:
        """The time that the rate is measured over: since the oldest sample, but at least all windows except
        one, and what has passed of the current one."""
        self._forget(now_ms)
        window_ms, full_min = self._windows.milliseconds, self._windows.count - 1
        elapsed = now_ms - self._samples[0].start_ms if self._samples else 0
        full = elapsed // window_ms
        if full < full_min:
            elapsed += (full_min - full) * window_ms
        return max(elapsed, 1)

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """How long nothing may be recorded until the rate is within the bound; 0 if it is.

        With x more milliseconds the observed rate O over W would be O * W / (W + x); solve that for the
        bound."""
        observed = self.measure(now_ms)
        if observed <= bound:
            return 0
        return _rounded((observed - bound) / bound * self.elapsed_ms(now_ms))

    @property
    def last_ms(self) -> int | None:
        """When something was recorded last; None if that is too long ago to count."""
        return self._samples[-1].last_ms if self._samples else None

    def _forget(self, now_ms: int) -> None:
        """Drop the samples whose last event is older than all windows. One that overlaps their begin is
        kept."""
        oldest_ms = now_ms - self._windows.count * self._windows.milliseconds
        samples = self._samples
        while samples and samples[0].last_ms <= oldest_ms:
            samples.popleft()


class TokenBucket:
    """Permits that come back at a steady rate, up to a burst of all windows (KIP-599).

    It may go below zero: a large change is allowed as long as there is any token left, and then paid back."""

    __slots__ = ("_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        # The bucket is full at first, whatever the bound will be.
        self._tokens = math.inf
        self._updated_ms = 0

    def tokens(self, bound: float, now_ms: int) -> float:
        burst = self._windows.count * self._windows.milliseconds / 1000 * bound
        gained = bound * max(0, now_ms - self._updated_ms) / 1000
        self._tokens = min(burst, self._tokens + gained)
        self._updated_ms = now_ms
        return self._tokens

    def record(self, value: float, bound: float, now_ms: int) -> None:
        self._tokens = self.tokens(bound, now_ms) - value

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """How long it takes until there are no tokens owed; 0 if there are none."""
        tokens = self.tokens(bound, now_ms)
        return 0 if tokens >= 0 else _rounded(-tokens / bound * 1000)


def _rounded(value: float) -> int:
    """Halves are rounded up."""
    return math.floor(value + 0.5)
