"""How tools print: columns as Kafka pads them, JSON for scripts, progress for people."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol


def columns(headers: Sequence[str], rows: Sequence[Sequence[object]], gap: int = 1) -> str:
    """Columns padded to their widest cell, a header line above; every line is one that `awk` can read."""
    lines = [list(headers), *[[_cell(value) for value in row] for row in rows]]
    widths = [max(len(line[index]) for line in lines) for index in range(len(headers))]
    space = " " * gap
    return "\n".join(
        space.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, default=str))


class Advance(Protocol):
    def __call__(self, done: float) -> None: ...


@contextmanager
def progress(label: str, total: float | None) -> Iterator[Advance]:
    """A bar on standard error while the block runs: advance(n) tells that n more are done.

    Where standard error is no terminal nothing is drawn, so that logs of scripts stay clean."""
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
