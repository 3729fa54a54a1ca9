"""Writes metric families as text: Prometheus' format 0.0.4, or OpenMetrics 1.0.0 when a scraper asks for it.

A step is a few hundred lines, so that a scrape of very many partitions never holds the loop for long. A
thread would not do: it competes with the loop for the interpreter lock, milliseconds at a time."""

import asyncio
import zlib
from collections.abc import Iterator

from barnabas.broker.metrics.families import COUNTER, PAUSE, ROWS_PER_STEP, Collected, Family

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# Little text per step, and quick: metrics are repetitive enough for the lowest level.
GZIP_LEVEL = 1
GZIP_FORMAT = 16 + zlib.MAX_WBITS


async def write(collected: Collected, *, open_metrics: bool, gzip: bool) -> bytes:
    """All families as text; others have their turn after each step."""
    output = bytearray()
    compressor = zlib.compressobj(GZIP_LEVEL, wbits=GZIP_FORMAT) if gzip else None
    for step in _steps(_lines(collected, open_metrics)):
        data = "".join(step).encode()
        output += compressor.compress(data) if compressor else data
        await asyncio.sleep(0)
    if compressor is not None:
        output += compressor.flush()
    return bytes(output)


def _steps(lines: Iterator[str | None]) -> Iterator[list[str]]:
    step: list[str] = []
    for line in lines:
        if line is not PAUSE:
            step.append(line)
        if line is PAUSE or len(step) >= ROWS_PER_STEP:
            yield step
            step = []
    yield step


def _lines(collected: Collected, open_metrics: bool) -> Iterator[str | None]:
    for family in collected:
        if family is PAUSE:
            yield PAUSE
        else:
            yield _head(family, open_metrics)
            name = family.name
            for suffix, labels, value in family.samples:
                yield f"{name}{suffix}{{{labels}}} {value}\n" if labels else f"{name}{suffix} {value}\n"
    if open_metrics:
        yield "# EOF\n"


def _head(family: Family, open_metrics: bool) -> str:
    # Only OpenMetrics has a name for all samples of a counter together.
    name = family.name + "_total" if family.kind == COUNTER and not open_metrics else family.name
    return f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n"
