"""Pictures of a run, as SVG beside its JSON: bars of ratios, curves of latencies, lines of growth."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.figures import CURVE_PARTS, METRICS
from tests.bench.goals import OURS, Judgement
from tests.bench.results import RowResult, Run
from tests.bench.svg import COLOURS, INK, Axis, Plot, Point, box, document, line, text

WIDTH = 860.0
LABEL_WIDTH = 330.0
BAR_HEIGHT, BAR_STEP = 16.0, 24.0
PLOT_WIDTH, PLOT_HEIGHT, PLOT_STEP = 340.0, 220.0, 320.0
MISSED = COLOURS[4]
Panel = tuple[str, tuple[str, str], dict[str, Sequence[Point]]]  # title, labels, lines by name


def draw(run: Run, beside: Path) -> list[Path]:
    """Write what there is to draw, each under the name of the JSON file with its own ending."""
    written = []
    for ending, content in (
        ("ratios", ratio_bars(run)),
        ("latencies", latency_curves(run)),
        ("growth", growth_lines(run)),
    ):
        if content:
            path = beside.with_name(f"{beside.stem}-{ending}.svg")
            path.write_text(content)
            written.append(path)
    return written


def ratio_bars(run: Run) -> str:
    """How many times better than what the goal compares with: to the right of 1 is better."""
    bars = list(_bars(run.rows))
    if not bars:
        return ""
    gains = [gain for _, gain, goal, _ in bars] + [goal for _, _, goal, _ in bars]
    height = 70 + BAR_STEP * len(bars)
    axis = Axis(min(0.5, *gains) / 1.1, max(2.0, *gains) * 1.1, LABEL_WIDTH, WIDTH - 60, logarithmic=True)
    parts = [text(16, 24, "Times better, and the goal (dashed)", size=14)]
    for value in axis.ticks():
        place = axis.place(value)
        parts += [
            line((place, 36), (place, height - 26)),
            text(place, height - 10, f"{value:g}x", "middle", 11),
        ]
    for row, (label, gain, goal, met) in enumerate(bars):
        top = 44 + BAR_STEP * row
        places = sorted((axis.place(1.0), axis.place(gain)))
        colour = COLOURS[0] if met else MISSED
        parts += [
            text(LABEL_WIDTH - 10, top + 13, label, "end"),
            box(places[0], top, max(1.0, places[1] - places[0]), BAR_HEIGHT, colour),
            line((axis.place(goal), top - 3), (axis.place(goal), top + BAR_HEIGHT + 3), INK, 2, "4 2"),
            text(places[1] + 6, top + 13, f"{gain:.2f}x", size=11),
        ]
    parts.append(line((axis.place(1.0), 36), (axis.place(1.0), height - 26), INK))
    return document(WIDTH, height, parts)


def _bars(rows: Sequence[RowResult]) -> Iterator[tuple[str, float, float, bool]]:
    for row in rows:
        for judgement in row.judgements:
            if judgement.reached and judgement.goal.against is not None:
                yield _label(row, judgement), *_gain(judgement), bool(judgement.met)


def _label(row: RowResult, judgement: Judgement) -> str:
    goal = judgement.goal
    if goal.contestant == OURS:
        return f"{row.name}, {METRICS[goal.metric].unit}"
    return f"{goal.contestant} : {goal.against}"


def _gain(judgement: Judgement) -> tuple[float, float]:
    """The reached value and the goal, both so that more is better."""
    assert judgement.reached
    if judgement.goal.less_is_better:
        return 1 / judgement.reached, 1 / judgement.goal.factor
    return judgement.reached, judgement.goal.factor


def latency_curves(run: Run) -> str:
    """The part of all requests that took no longer than so many microseconds."""
    panels: list[Panel] = []
    for row in run.rows:
        curves = {each.contestant: each.curve_us for each in row.results if each.curve_us}
        if curves:
            named: dict[str, Sequence[Point]] = {
                name: list(zip(us, CURVE_PARTS, strict=True)) for name, us in curves.items()
            }
            panels.append((f"{row.name}: {row.work}", ("microseconds", "part"), named))
    return _panels(panels, log_x=True, log_y=False)


def growth_lines(run: Run) -> str:
    panels: list[Panel] = []
    for row in run.rows:
        titles = dict.fromkeys(title for result in row.results for title in result.series)
        for title in titles:
            named: dict[str, Sequence[Point]] = {
                result.contestant: [(x, y) for x, y in result.series[title]]
                for result in row.results
                if title in result.series
            }
            panels.append((row.name, (title, METRICS[row.metric].unit), named))
    return _panels(panels, log_x=True, log_y=False)


def _panels(panels: Sequence[Panel], *, log_x: bool, log_y: bool) -> str:
    """Panels in two columns and as many rows as necessary."""
    if not panels:
        return ""
    parts = []
    for place, (title, labels, named) in enumerate(panels):
        plot = Plot(60 + place % 2 * (PLOT_WIDTH + 80), 60 + place // 2 * PLOT_STEP, PLOT_WIDTH, PLOT_HEIGHT)
        points = [point for line_points in named.values() for point in line_points]
        x_axis, y_axis = plot.axes(points, log_x=log_x, log_y=log_y)
        parts += plot.draw(title if len(title) < 54 else f"{title[:52]}…", labels, x_axis, y_axis)
        parts += plot.lines(named, x_axis, y_axis)
    return document(WIDTH, PLOT_STEP * ((len(panels) + 1) // 2), parts)
