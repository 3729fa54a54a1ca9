"""The table and the progress bar, on a terminal or in a file."""

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from tests.bench.loads import Tick
from tests.bench.rows import Figure


def print_table(console: Console, peers: list[str], figures: dict[str, list[Figure]]) -> None:
    """One line for each row, the peers' figures side by side."""
    table = Table(title="one broker", title_justify="left")
    for column in ("row", "work", *peers, "goal"):
        table.add_column(column, overflow="fold")
    by_line = {peer: {(each.row, each.work): each for each in figures[peer]} for peer in peers}
    lines = {(each.row, each.work): each.goal for peer in peers for each in figures[peer]}
    for line, goal in lines.items():
        cells = ["\n".join(by_line[peer][line].figures) if line in by_line[peer] else "" for peer in peers]
        table.add_row(*line, *cells, goal)
    console.print(table)


@contextlib.contextmanager
def progress(console: Console, label: str) -> Iterator[Tick]:
    """A bar on a terminal; elsewhere one line when the work begins."""
    if not console.is_terminal:
        console.print(label)
        yield lambda part: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=1.0)
        yield lambda part: bar.update(task, completed=part)
