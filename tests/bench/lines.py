"""The lines of the tables, the same on a terminal and in docs/performance.md.

Brokers are shown side by side, with a line for each figure. There are too many clients and connectors for
that: each has its own line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.bench.figures import METRICS
from tests.bench.goals import KAFKA, OURS, Judgement, ratio
from tests.bench.results import Result, RowResult, Run

PEERS = (OURS, KAFKA)


@dataclass(frozen=True, slots=True)
class Line:
    """Cells by column. `met`: whether the goals are met (None: not compared); `opens`: a row begins here."""

    cells: Sequence[str]
    met: bool | None = None
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    group: str
    columns: Sequence[str]
    lines: Sequence[Line]


def tables(run: Run) -> Iterator[Lines]:
    """One for each group of rows."""
    for group in dict.fromkeys(row.group for row in run.rows):
        rows = [row for row in run.rows if row.group == group]
        contestants = list(dict.fromkeys(each.contestant for row in rows for each in row.results))
        if set(contestants) <= set(PEERS):
            columns = ["row", "figure", *contestants, *(["ratio"] if KAFKA in contestants else []), "goal"]
            yield Lines(group, columns, [line for row in rows for line in _side_by_side(row, contestants)])
        else:
            columns = ["row", "of", "figures", "goals"]
            yield Lines(group, columns, [line for row in rows for line in _below_each_other(row)])


def figure(result: Result, metric: str, *, with_unit: bool) -> str:
    """The middle of the rounds and, where there are several, half their distance as a percentage."""
    summary = result.summaries.get(metric)
    if summary is None:
        return ""
    shown = METRICS[metric].show(summary.middle)
    if not with_unit:
        shown = shown.partition(" ")[0]
    return f"{shown} ±{summary.spread / 2:.0%}" if len(result.rounds) > 1 else shown


def _side_by_side(row: RowResult, contestants: Sequence[str]) -> Iterator[Line]:
    by_name = {each.contestant: each for each in row.results}
    judged = {judgement.goal.metric: judgement for judgement in row.judgements}
    metrics = list(dict.fromkeys(metric for each in row.results for metric in each.summaries))
    by_contestant = row.summaries
    for number, metric in enumerate(metrics):
        cells = [row.name if number == 0 else "", METRICS[metric].unit]
        cells += [
            figure(by_name[name], metric, with_unit=False) if name in by_name else "" for name in contestants
        ]
        if KAFKA in contestants:
            times = ratio(by_contestant, metric, OURS, KAFKA)
            cells.append("" if times is None else f"{times:.2f}x")
        judgement = judged.get(metric)
        cells.append(_goal(judgement) if judgement else "")
        yield Line(cells, judgement.met if judgement else None, opens=number == 0)
    for each in row.results:
        if each.failure:
            empty = [""] * (len(contestants) + (KAFKA in contestants))
            yield Line([row.name, f"{each.contestant} failed: {each.failure}", *empty, ""], False, opens=True)


def _goal(judgement: Judgement) -> str:
    sign = "<=" if judgement.goal.less_is_better else ">="
    times = "" if judgement.goal.against is None else "x"
    verdict = {True: ", met", False: ", missed", None: ""}[judgement.met]
    return f"{sign} {judgement.goal.factor:g}{times}{verdict}"


def _below_each_other(row: RowResult) -> Iterator[Line]:
    for number, result in enumerate(row.results):
        judgements = [each for each in row.judgements if each.goal.contestant == result.contestant]
        verdicts = [each.met for each in judgements if each.met is not None]
        figures = ", ".join(figure(result, metric, with_unit=True) for metric in result.summaries)
        cells = [
            row.name if number == 0 else "",
            result.contestant,
            f"failed: {result.failure}" if result.failure else figures,
            "; ".join(_versus(each) for each in judgements),
        ]
        yield Line(cells, all(verdicts) if verdicts else None, opens=number == 0)


def _versus(judgement: Judgement) -> str:
    if judgement.goal.against is None:
        return _goal(judgement)
    reached = "" if judgement.reached is None else f"{judgement.reached:.2f}x "
    return f"{reached}{judgement.goal.against} ({_goal(judgement)})"


def failures(rows: Sequence[RowResult]) -> list[str]:
    """The missed goals and the failed rows, as texts."""
    phrases = []
    for row in rows:
        phrases += [
            f"{row.name} ({each.contestant}) failed: {each.failure}" for each in row.results if each.failure
        ]
        for judgement in row.judgements:
            if judgement.met is False:
                name = "" if judgement.goal.contestant == OURS else f"{judgement.goal.contestant}, "
                phrases.append(f"{row.name}: {name}{judgement}")
    return phrases
