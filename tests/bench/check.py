"""`python -m tests.bench.check`: what changed between the last two runs by more than their spread.

If both runs measured the peer, the ratios to the peer are compared: changes of the machine affect both."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from tests.bench.figures import METRICS, Summary
from tests.bench.goals import KAFKA, OURS
from tests.bench.results import RowResult, Run, last_two

# A single round has no spread, and two rounds may agree by chance: smaller changes are not reported.
SPREAD_MIN = 0.05


@dataclass(frozen=True, slots=True)
class Move:
    row: str
    contestant: str
    metric: str
    before: float
    after: float
    spread: float
    is_ratio: bool

    @property
    def change(self) -> float:
        return self.after / self.before - 1

    @property
    def is_better(self) -> bool:
        return (self.change > 0) == (METRICS[self.metric].better > 0)

    def show(self, value: float) -> str:
        return f"{value:.2f}x of {KAFKA}" if self.is_ratio else METRICS[self.metric].show(value)


def moves(before: Run, after: Run) -> Iterator[Move]:
    older = {row.name: row for row in before.rows}
    for row in after.rows:
        if row.name in older:
            yield from _row_moves(older[row.name], row)


def _row_moves(before: RowResult, after: RowResult) -> Iterator[Move]:
    old, new = before.summaries, after.summaries
    for contestant in new:
        for metric in new[contestant]:
            if contestant == KAFKA or metric not in old.get(contestant, {}):
                continue
            pairs = [
                (summaries[contestant][metric], _peer(summaries, contestant, metric))
                for summaries in (old, new)
            ]
            move = _compared(after.name, contestant, metric, pairs)
            if move and abs(move.change) > move.spread:
                yield move


def _peer(summaries: dict[str, dict[str, Summary]], contestant: str, metric: str) -> Summary | None:
    return summaries.get(KAFKA, {}).get(metric) if contestant == OURS else None


def _compared(
    row: str, contestant: str, metric: str, pairs: list[tuple[Summary, Summary | None]]
) -> Move | None:
    values, spreads = [], []
    is_ratio = all(peer and peer.middle for _, peer in pairs)
    for mine, peer in pairs:
        by_peer = peer if is_ratio and peer else Summary(1.0, 1.0, 1.0)
        values.append(mine.middle / by_peer.middle)
        spreads.append(mine.spread + by_peer.spread)
    if not values[0]:
        return None
    before, after = values
    return Move(row, contestant, metric, before, after, max(SPREAD_MIN, *spreads), is_ratio)


def main() -> None:
    console = Console()
    try:
        before, after = last_two()
    except LookupError as reason:
        raise SystemExit(str(reason)) from reason
    for run in (before, after):
        console.print(f"{run.date} {run.versions.get('commit', '')}")
    if before.settings != after.settings:
        console.print("Note: the two runs had different sizes or peers.")
    table = Table("row", "of", "before", "after", "change", "spread")
    for move in moves(before, after):
        colour = "green" if move.is_better else "red"
        change = f"[{colour}]{move.change:+.0%}, {'better' if move.is_better else 'worse'}[/]"
        shown = (move.show(move.before), move.show(move.after))
        table.add_row(move.row, move.contestant, *shown, change, f"{move.spread:.0%}")
    console.print(table if table.row_count else "Nothing moved by more than its spread.")


if __name__ == "__main__":
    main()
