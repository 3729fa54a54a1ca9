"""Statistics of sent records, and Kafka's lines for them: one per interval, one at the end."""

import time
from array import array
from collections.abc import Callable, Sequence

SAMPLES_MAX = 500_000
MEGABYTE = 1024 * 1024


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def percentile(ordered: Sequence[int], share: float) -> int:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0


class Window:
    """The records counted since `start_ms`."""

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.count = 0
        self.bytes = 0
        self.latency_total = 0
        self.latency_max = 0

    def add(self, latency_ms: int, size: int) -> None:
        self.count += 1
        self.bytes += size
        self.latency_total += latency_ms
        if latency_ms > self.latency_max:
            self.latency_max = latency_ms

    def rates(self, end_ms: int) -> tuple[float, float]:
        """Records and megabytes per second."""
        seconds = max(end_ms - self.start_ms, 1) / 1000
        return self.count / seconds, self.bytes / seconds / MEGABYTE

    @property
    def latency_mean(self) -> float:
        return self.latency_total / self.count if self.count else 0.0


class ProducerStatistics:
    """Latencies of acknowledged records. done() is called once per record, on the producer's I/O thread."""

    def __init__(
        self, records: int, interval_ms: int, report: Callable[[str], object], *, steady: bool = False
    ) -> None:
        start = now_ms()
        self.total = Window(start)
        self.errors = 0
        self._window = Window(start)
        self._interval_ms = interval_ms
        self._report = report
        self._steady = steady
        self._sample_every = max(1, records // SAMPLES_MAX)
        self._samples = array("q")

    def done(self, start_ms: int, size: int) -> None:
        now = now_ms()
        latency = now - start_ms
        self.total.add(latency, size)
        self._window.add(latency, size)
        if self.total.count % self._sample_every == 0 or self.total.count == 1:
            self._samples.append(latency)
        if now - self._window.start_ms >= self._interval_ms:
            self._report(self.window_line(now))
            self._window = Window(now)

    def window_line(self, now: int) -> str:
        window = self._window
        records, megabytes = window.rates(now)
        return (
            f"{window.count} records sent, {records:.1f} records/sec ({megabytes:.2f} MB/sec), "
            f"{window.latency_mean:.1f} ms avg latency, {float(window.latency_max):.1f} ms max latency."
        )

    def total_line(self) -> str:
        total = self.total
        records, megabytes = total.rates(now_ms())
        ordered = sorted(self._samples)
        shares = ", ".join(
            f"{percentile(ordered, share)} ms {name}"
            for share, name in ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th"))
        )
        kind = "steady state records" if self._steady else "records"
        return (
            f"{total.count} {kind} sent, {records:.1f} records/sec ({megabytes:.2f} MB/sec), "
            f"{total.latency_mean:.2f} ms avg latency, {float(total.latency_max):.2f} ms max latency, "
            f"{shares}."
        )
