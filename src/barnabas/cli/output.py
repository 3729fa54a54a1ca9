"""How tools print: tables as Kafka's tools pad them, JSON for scripts, progress for people."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

MISSING = "-"


def columns(headers: Sequence[str], rows: Sequence[Sequence[object]], gap: int = 1) -> str:
    """A header line and rows, with columns padded to their widest cell; `awk` can read every line."""
    lines = [list(headers), *[[cell_text(value) for value in row] for row in rows]]
    widths = [max(len(line[index]) for line in lines) for index in range(len(headers))]
    space = " " * gap
    return "\n".join(
        space.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )


def cell_text(value: object) -> str:
    return MISSING if value is None else str(value)


def print_table(lines: Sequence[Sequence[str]], widths_min: Sequence[int]) -> None:
    """A table of consumer-groups. A column is as wide as its widest cell, and at least its minimum width. A
    negative minimum is a fixed width; 0 means no padding."""
    widths = [
        max(minimum, *(len(line[index]) for line in lines)) if minimum > 0 else -minimum
        for index, minimum in enumerate(widths_min)
    ]
    for line in lines:
        print(" ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))


def print_tabbed(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table of kafka-transactions: padded columns with a tab after each, so that `cut -f` works."""
    lines = [list(headers), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(headers))]
    for line in lines:
        print("".join(f"{cell:{width}}\t" for cell, width in zip(line, widths, strict=True)))


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, default=str))


class Advance(Protocol):
    def __call__(self, done: float) -> None: ...


@contextmanager
def progress(label: str, total: float | None) -> Iterator[Advance]:
    """A progress bar on standard error while the block runs: advance(n) says that n more items are done.

    If standard error is not a terminal, nothing is printed, so that the logs of scripts stay clean."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with shown:
        task = shown.add_task(label, total=total)
        yield lambda done: shown.advance(task, done)
