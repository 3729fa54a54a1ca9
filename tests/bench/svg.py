"""A little SVG: text, lines, and a plot with logarithmic or plain axes. Nothing but strings."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

FONT = "font-family='system-ui, sans-serif' font-size='{size}' fill='{colour}'"
INK, FAINT = "#222222", "#dddddd"
COLOURS = ("#2563a8", "#d9822b", "#3c9d5c", "#8a5bb5", "#b5434f", "#777777")
Point = tuple[float, float]


def text(x: float, y: float, content: str, anchor: str = "start", size: int = 12, colour: str = INK) -> str:
    font = FONT.format(size=size, colour=colour)
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' {font}>{escape(content)}</text>"


def line(first: Point, last: Point, colour: str = FAINT, width: float = 1.0, dashes: str = "") -> str:
    places = f"x1='{first[0]:.1f}' y1='{first[1]:.1f}' x2='{last[0]:.1f}' y2='{last[1]:.1f}'"
    return f"<line {places} stroke='{colour}' stroke-width='{width}' stroke-dasharray='{dashes}'/>"


def box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' rx='2' fill='{colour}'/>"


def path(points: Sequence[Point], colour: str) -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f"<polyline points='{places}' fill='none' stroke='{colour}' stroke-width='2'/>"


def document(width: float, height: float, parts: Iterable[str]) -> str:
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.0f} {height:.0f}' width='{width:.0f}'>"
    )
    return "\n".join(
        [head, f"<rect width='{width:.0f}' height='{height:.0f}' fill='white'/>", *parts, "</svg>\n"]
    )


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `least` to `most` laid out between two places."""

    least: float
    most: float
    begin: float
    end: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        if self.logarithmic:
            part = math.log(max(value, 1e-12) / self.least) / math.log(self.most / self.least)
        else:
            part = (value - self.least) / (self.most - self.least)
        return self.begin + (self.end - self.begin) * min(1.0, max(0.0, part))

    def ticks(self) -> list[float]:
        """Round values: 1, 2 and 5 of every power of ten, or about five equal steps."""
        if self.logarithmic:
            powers = range(math.floor(math.log10(self.least)), math.ceil(math.log10(self.most)) + 1)
            values = [step * 10.0**power for power in powers for step in (1, 2, 5)]
        else:
            rough = (self.most - self.least) / 5
            power = 10.0 ** math.floor(math.log10(rough))
            step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
            first = math.ceil(self.least / step)
            values = [number * step for number in range(first, math.floor(self.most / step) + 1)]
        return [value for value in values if self.least * 0.999 <= value <= self.most * 1.001]


def axis_for(values: Sequence[float], begin: float, end: float, *, logarithmic: bool) -> Axis:
    """An axis that holds all values, with a margin; a plain one begins at zero."""
    least, most = min(values), max(values)
    if not logarithmic:
        return Axis(0.0, most * 1.1 or 1.0, begin, end)
    return Axis(max(least, 1e-9) / 1.15, max(most, 1e-9) * 1.15, begin, end, logarithmic=True)


def number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:g}"


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over two axes, drawn in a rectangle; the names of the lines are at the bottom right."""

    x: float
    y: float
    width: float
    height: float

    def draw(self, title: str, labels: tuple[str, str], x_axis: Axis, y_axis: Axis) -> list[str]:
        left, bottom = self.x, self.y + self.height
        parts = [text(left, self.y - 26, title, size=13)]
        for value in x_axis.ticks():
            place = x_axis.place(value)
            parts.append(line((place, self.y), (place, bottom)))
            parts.append(text(place, bottom + 16, number(value), "middle", 11))
        for value in y_axis.ticks():
            place = y_axis.place(value)
            parts.append(line((left, place), (left + self.width, place)))
            parts.append(text(left - 6, place + 4, number(value), "end", 11))
        parts.append(text(left + self.width / 2, bottom + 34, labels[0], "middle"))
        parts.append(text(left - 46, self.y - 8, labels[1], size=11))
        return parts

    def lines(self, named: dict[str, Sequence[Point]], x_axis: Axis, y_axis: Axis) -> list[str]:
        parts = []
        for place, (name, points) in enumerate(named.items()):
            colour = COLOURS[place % len(COLOURS)]
            parts.append(path([(x_axis.place(x), y_axis.place(y)) for x, y in points], colour))
            below = self.y + self.height - 10 - 16 * (len(named) - 1 - place)
            parts.append(text(self.x + self.width - 6, below, name, "end", colour=colour))
        return parts

    def axes(self, points: Sequence[Point], *, log_x: bool, log_y: bool) -> tuple[Axis, Axis]:
        across = axis_for([x for x, _ in points], self.x, self.x + self.width, logarithmic=log_x)
        upward = axis_for([y for _, y in points], self.y + self.height, self.y, logarithmic=log_y)
        return across, upward
