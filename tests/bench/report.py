"""The table and the progress, on a terminal or in a file."""

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from tests.bench.lines import tables
from tests.bench.results import Run
from tests.bench.runner import Notify

STYLES = {True: "green", False: "red", None: ""}
# The driver and the broker need the processors: the bar is not drawn more often than this.
DRAWN_PER_SECOND = 2


def print_run(console: Console, run: Run) -> None:
    for lines_of_group in tables(run):
        table = Table(title=lines_of_group.group, title_justify="left")
        for column in lines_of_group.columns:
            table.add_column(column, overflow="fold")
        for line in lines_of_group.lines:
            if line.opens:
                table.add_section()
            *cells, goal = (escape(cell) for cell in line.cells)
            table.add_row(*cells, f"[{STYLES[line.met]}]{goal}[/]" if STYLES[line.met] else goal)
        console.print(table)


@contextlib.contextmanager
def progress(console: Console, rows: int) -> Iterator[tuple[Notify, Notify]]:
    """Two functions: one shows what is being done, the other that a row is done, with its result."""
    if not console.is_terminal:
        yield console.print, console.print
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, refresh_per_second=DRAWN_PER_SECOND) as bar:
        task = bar.add_task("", total=rows)

        def done(text: str) -> None:
            console.print(text)
            bar.advance(task)

        yield lambda text: bar.update(task, description=text), done
