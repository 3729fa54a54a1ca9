"""Shows the progress of a pipeline: as a table on a terminal, as lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from barnabas.spark.pipeline.progress import PROCESSING, WAITING, QueryProgress

if TYPE_CHECKING:
    from rich.live import Live

# A query that ends many batches per second gets one line per second.
LINE_SECONDS = 1.0
MISSING = "-"


class Screen(Protocol):
    def say(self, sentence: str) -> None: ...

    def show(self, progress: list[QueryProgress]) -> None: ...


class Lines:
    """For logs: a line for a query when its state changes or a batch has ended."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._printed: dict[str, tuple[str, int, float]] = {}

    def say(self, sentence: str) -> None:
        print(f"{self._name}: {sentence}", file=sys.stderr, flush=True)

    def show(self, progress: list[QueryProgress]) -> None:
        now = time.monotonic()
        for each in progress:
            state, batches, last = self._printed.get(each.name, ("", 0, 0.0))
            is_new_batch = each.batches != batches and now - last >= LINE_SECONDS
            # Between two batches a query waits and processes in turns: that is no news.
            is_in_turns = state in (PROCESSING, WAITING) and each.state in (PROCESSING, WAITING)
            if is_new_batch or (each.state != state and not is_in_turns):
                self._printed[each.name] = (each.state, each.batches, now)
                self.say(f"{each.name}: {line_of(each)}")


def line_of(each: QueryProgress) -> str:
    """The progress of a query as one line."""
    if not each.batches:
        return f"{each.state} (no batch has ended yet)" if each.state == PROCESSING else each.state
    behind = each.seconds_behind
    parts = [
        f"batch {each.batches} in {each.batch_ms / 1000:.1f} s",
        f"{each.rows:,} rows",
        f"{each.rows_per_second:,.0f} rows/s",
        f"{bytes_text(each.bytes_per_second)}/s",
        f"lag {number_text(each.lag_total)}" + ("" if behind is None else f" (about {behind:,.0f} s)"),
        each.state,
    ]
    return ", ".join(parts)


def number_text(number: int | None) -> str:
    return MISSING if number is None else f"{number:,}"


def bytes_text(count: float | None) -> str:
    if count is None:
        return MISSING
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"


class Table:
    """For terminals: a table that is redrawn with every report."""

    def __init__(self, name: str, live: "Live") -> None:
        self._name = name
        self._live = live
        self._sentence = "starting Spark"
        self._progress: list[QueryProgress] = []
        self._draw()

    def say(self, sentence: str) -> None:
        self._sentence = sentence
        self._draw()

    def show(self, progress: list[QueryProgress]) -> None:
        self._sentence = ""
        self._progress = progress
        self._draw()

    def _draw(self) -> None:
        from rich.table import Table as Drawn

        drawn = Drawn(title=f"{self._name}  {self._sentence}", title_justify="left", expand=False)
        for header in HEADERS:
            drawn.add_column(header, justify="left" if header in ("query", "state") else "right")
        for each in self._progress:
            drawn.add_row(*_row(each))
        self._live.update(drawn, refresh=True)


HEADERS = ("query", "state", "batches", "rows", "rows/s", "bytes/s", "batch", "lag", "behind")


def _row(each: QueryProgress) -> tuple[str, ...]:
    lag = MISSING if each.lag is None else ", ".join(f"{name} {count:,}" for name, count in each.lag.items())
    if not each.batches:
        return (each.name, each.state, "0", *[MISSING] * (len(HEADERS) - 3))
    return (
        each.name,
        each.state,
        f"{each.batches:,}",
        f"{each.rows:,}",
        f"{each.rows_per_second:,.0f}",
        bytes_text(each.bytes_per_second),
        f"{each.batch_ms / 1000:.1f} s",
        lag,
        MISSING if each.seconds_behind is None else f"{each.seconds_behind:,.0f} s",
    )


@contextmanager
def screen(name: str) -> Iterator[Screen]:
    """A table if standard error is a terminal, lines otherwise."""
    if not sys.stderr.isatty():
        yield Lines(name)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield Table(name, live)
