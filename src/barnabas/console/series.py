"""Rates of the last half hour, one point per sample: of the whole cluster, and of the topics that are in use.

A topic has a row only once something was written to it, and a row is an array of small numbers: thousands of
topics take some megabytes."""

import time
from array import array
from collections import deque
from collections.abc import Mapping

HISTORY_SECONDS = 30 * 60
TOPICS_MAX = 20_000

Points = list[tuple[int, float | None]]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Rates:
    """Values by name that belong to the same moments. A name without a value has 0."""

    def __init__(self, sample_seconds: float) -> None:
        self.length = max(2, int(HISTORY_SECONDS / max(sample_seconds, 0.1)))
        self._times: deque[int] = deque(maxlen=self.length)
        self._rows: dict[str, array[float]] = {}

    def add(self, time_ms: int, values: Mapping[str, float]) -> None:
        self._times.append(time_ms)
        position = len(self._times) - 1
        for name, row in list(self._rows.items()):
            if len(row) == self.length:
                del row[0]
            row.append(values.get(name, 0.0))
            if not any(row):
                del self._rows[name]
        for name, value in values.items():
            if value and name not in self._rows and len(self._rows) < TOPICS_MAX:
                self._rows[name] = array("f", [0.0] * position + [value])

    def points(self, name: str) -> Points:
        row = self._rows.get(name)
        return [
            (moment, 0.0 if row is None else round(row[number], 3))
            for number, moment in enumerate(self._times)
        ]

    def last(self, name: str) -> float:
        row = self._rows.get(name)
        return round(row[-1], 3) if row else 0.0


class Counter:
    """Turns growing totals by name into rates: how much each grew per second since the last time."""

    def __init__(self) -> None:
        self._totals: dict[str, int] = {}
        self._at: float | None = None

    def rates(self, totals: Mapping[str, int]) -> dict[str, float]:
        now = time.monotonic()
        before, at = self._totals, self._at
        self._totals, self._at = dict(totals), now
        if at is None or now <= at:
            return {}
        # A total becomes smaller when a topic is made again, or segments are deleted.
        return {
            name: (total - before[name]) / (now - at)
            for name, total in totals.items()
            if name in before and total > before[name]
        }
