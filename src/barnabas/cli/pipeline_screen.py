"""Shows the progress of a pipeline: as a table on a terminal, as lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.live import Live

    from barnabas.spark.pipeline.progress import QueryProgress

LINE_SECONDS = 5.0


class Screen(Protocol):
    def say(self, sentence: str) -> None: ...

    def show(self, progress: "list[QueryProgress]") -> None: ...


class Lines:
    """For logs: one line per query, no more often than every few seconds."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = 0.0

    def say(self, sentence: str) -> None:
        print(f"{self._name}: {sentence}", file=sys.stderr, flush=True)

    def show(self, progress: "list[QueryProgress]") -> None:
        now = time.monotonic()
        if now - self._last < LINE_SECONDS:
            return
        self._last = now
        for each in progress:
            self.say(
                f"{each.name}: {each.rows:,} rows, {each.rows_per_second:,.0f} rows/s, "
                f"lag {each.lag_total:,}, batch {each.batch_ms} ms, {each.state}"
            )


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

    def show(self, progress: "list[QueryProgress]") -> None:
        self._sentence = ""
        self._progress = progress
        self._draw()

    def _draw(self) -> None:
        from rich.table import Table as Drawn

        drawn = Drawn(title=f"{self._name}  {self._sentence}", title_justify="left", expand=False)
        for header in ("query", "state", "rows", "rows/s", "batch", "lag"):
            drawn.add_column(header, justify="left" if header in ("query", "state") else "right")
        for each in self._progress:
            lag = ", ".join(f"{topic} {count:,}" for topic, count in each.lag.items())
            drawn.add_row(
                each.name,
                each.state,
                f"{each.rows:,}",
                f"{each.rows_per_second:,.0f}",
                f"{each.batch_ms} ms",
                lag,
            )
        self._live.update(drawn, refresh=True)


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
