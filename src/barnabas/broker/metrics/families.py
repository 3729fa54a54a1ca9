"""Metric families: a name, a type, a help text and samples. Pure values.

A collector is a generator of families. Where it works for long it yields PAUSE, and the scrape then lets the
loop serve others; samples may be generators for the same reason."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
PAUSE = None
# A collector pauses after this many rows: about half a millisecond of work.
ROWS_PER_STEP = 200

# What is added to the family's name, the labels as `labels` gives them, and the value.
Sample: TypeAlias = tuple[str, str, float]


class Family(NamedTuple):
    """The name of a counter goes without `_total`; its samples have that suffix."""

    name: str
    kind: str
    help: str
    samples: Iterable[Sample]


Collected: TypeAlias = Iterator[Family | None]


def labels(**values: object) -> str:
    """The text between the braces of a sample; values are escaped."""
    return ",".join(f'{name}="{_escape(str(value))}"' for name, value in values.items())


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def counter(name: str, text: str, value: float) -> Family:
    return counters(name, text, [("", value)])


def counters(name: str, text: str, rows: Iterable[tuple[str, float]]) -> Family:
    """One sample per (labels, value)."""
    return Family(name, COUNTER, text, (("_total", row_labels, value) for row_labels, value in rows))


def gauge(name: str, text: str, value: float) -> Family:
    return gauges(name, text, [("", value)])


def gauges(name: str, text: str, rows: Iterable[tuple[str, float]]) -> Family:
    """One sample per (labels, value)."""
    return Family(name, GAUGE, text, (("", row_labels, value) for row_labels, value in rows))
