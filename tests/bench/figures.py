"""Figures of the benchmark: what is measured, and the summary of several rounds. Pure arithmetic."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

HIGHER, LOWER = 1, -1
AGREE_WITHIN = 0.1
# A curve keeps these parts of its latencies: every half percent, and the tail more finely.
CURVE_PARTS = (*(number / 200 for number in range(1, 200)), 0.996, 0.997, 0.998, 0.999)


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure's unit as it is shown, and which way is better."""

    unit: str
    better: int = HIGHER
    digits: int = 0
    scale: float = 1.0

    def show(self, value: float) -> str:
        return f"{value / self.scale:,.{self.digits}f} {self.unit}"


METRICS: dict[str, Metric] = {
    "megabytes_per_second": Metric("MB/s"),
    "requests_per_second": Metric("req/s"),
    "cpu_us_per_request": Metric("us CPU/req", LOWER, 1),
    "cpu_seconds_per_gigabyte": Metric("s CPU/GB", LOWER, 2),
    "p50_us": Metric("us p50", LOWER),
    "p99_us": Metric("us p99", LOWER),
    "p999_us": Metric("us p99.9", LOWER),
    "start_seconds": Metric("s to start", LOWER, 2),
    "start_cpu_seconds": Metric("s CPU to start", LOWER, 2),
    "idle_megabytes": Metric("MB idle", LOWER),
    "loaded_megabytes": Metric("MB loaded", LOWER),
    "resident_megabytes": Metric("MB resident", LOWER),
    "records_per_second": Metric("k rec/s", HIGHER, 0, 1000),
    "cpu_us_per_record": Metric("us CPU/rec", LOWER, 2),
    "rows_per_second": Metric("M rows/s", HIGHER, 2, 1e6),
    "rows_per_second_with_start": Metric("M rows/s with the start", HIGHER, 2, 1e6),
    "run_seconds": Metric("s to run", LOWER, 1),
    "growth": Metric("x from least to most", LOWER, 2),
    "pipelined_growth": Metric("x from least to most, five under way", LOWER, 2),
    "clean_start_seconds": Metric("s to start after a clean stop", LOWER, 2),
    "unclean_start_seconds": Metric("s to start after a kill", LOWER, 2),
    "clean_start_cpu_seconds": Metric("s CPU to start after a clean stop", LOWER, 2),
    "unclean_start_cpu_seconds": Metric("s CPU to start after a kill", LOWER, 2),
    "idle_descriptors": Metric("descriptors after a start", LOWER),
    "busy_descriptors": Metric("descriptors with every partition written to", LOWER),
    "empty_start_seconds": Metric("s to start after a kill, empty", LOWER, 2),
    "by_offset_p50_us": Metric("us p50 by offset", LOWER),
    "by_offset_p99_us": Metric("us p99 by offset", LOWER),
    "by_time_p50_us": Metric("us p50 by time", LOWER),
    "by_time_p99_us": Metric("us p99 by time", LOWER),
    "session_p50_us": Metric("us p50 in a session", LOWER),
    "session_p99_us": Metric("us p99 in a session", LOWER),
    "sessionless_p50_us": Metric("us p50 without", LOWER),
    "beside_megabytes_per_second": Metric("MB/s beside another's acks"),
    "alone_p99_us": Metric("us p99 of another's acks before", LOWER),
    "beside_p50_us": Metric("us p50 of another's acks meanwhile", LOWER),
    "beside_p99_us": Metric("us p99 of another's acks meanwhile", LOWER),
    "held_kilobytes_per_connection": Metric("KB a connection", LOWER, 1),
    "first_megabytes": Metric("MB after the first", LOWER),
    "largest_megabytes": Metric("MB at most", LOWER),
    "two_megabytes_per_second": Metric("MB/s of two processes"),
    "two_cpu_us_per_request": Metric("us CPU/req of two", LOWER, 1),
    "election_seconds": Metric("s to elect all leaders", LOWER, 2),
    "leaderless_seconds": Metric("s from the kill to all leaders", LOWER, 2),
    "gap_seconds": Metric("s longest gap", LOWER, 3),
    "longest_us": Metric("ms longest", LOWER, 1, 1000),
    "handshakes_per_second": Metric("handshakes/s"),
    "gain": Metric("x by a second process", HIGHER, 2),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """The result of one round: figures by metric, the curve of its latencies, and points to draw."""

    values: Mapping[str, float]
    curve_us: Sequence[float] = ()
    series: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Summary:
    """The rounds of one metric: the median is the figure, the range of the others is its spread."""

    middle: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Summary":
        return cls(statistics.median(values), min(values), max(values))

    @property
    def spread(self) -> float:
        """As a share of the median: 0.1 when the largest and the smallest round differ by 10 %."""
        return (self.most - self.least) / self.middle if self.middle else 0.0


def agree(first: float, second: float, within: float = AGREE_WITHIN) -> bool:
    """Whether two rounds have the same result."""
    return abs(first - second) <= within * max(abs(first), abs(second))


def percentile(ordered: Sequence[float], part: float) -> float:
    """The value below which this part of an ordered sequence is; interpolated between neighbours."""
    if not ordered:
        raise ValueError("an empty sequence has no percentile")
    position = part * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def latency_sample(seconds: Sequence[float], **others: float) -> Sample:
    """The percentiles and the curve of latencies, in microseconds."""
    ordered = sorted(each * 1e6 for each in seconds)
    values = {
        "p50_us": percentile(ordered, 0.5),
        "p99_us": percentile(ordered, 0.99),
        "p999_us": percentile(ordered, 0.999),
    }
    return Sample(values | others, [round(percentile(ordered, part), 1) for part in CURVE_PARTS])


def middle_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    """The median of several rounds' curves at every part."""
    return [statistics.median(points) for points in zip(*curves, strict=True)]
