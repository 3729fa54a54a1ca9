"""What pictures are made of: boxes, arrows and text as SVG, and two kinds of whole pictures."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

INK, FAINT = "#222222", "#999999"
# Fill and border.
PLAIN = ("#f4f6fa", "#8a94a6")
BLUE = ("#e3edf9", "#2563a8")
ORANGE = ("#fdeedd", "#d9822b")
GREEN = ("#e2f3e7", "#3c9d5c")
RED = ("#fae3e5", "#b5434f")
LINE_HEIGHT = 16
FONT = "font-family='system-ui, sans-serif'"
Colours = tuple[str, str]
Point = tuple[float, float]


class Message(NamedTuple):
    """An arrow of a sequence; from an actor to itself, it is a note."""

    sender: str
    receiver: str
    words: str
    is_answer: bool = False


class Move(NamedTuple):
    """An arrow between two states. `bend` moves it to the side, `words_at` the words along and beside it."""

    start: str
    end: str
    words: str
    bend: float = 0.0
    words_at: Point = (0.0, -6.0)


def text(place: Point, words: str, anchor: str = "middle", size: int = 13, colour: str = INK) -> str:
    lines = words.split("\n")
    first = place[1] - (len(lines) - 1) * LINE_HEIGHT / 2
    rows = "".join(
        f"<tspan x='{place[0]:.0f}' y='{first + number * LINE_HEIGHT:.0f}'>{escape(line)}</tspan>"
        for number, line in enumerate(lines)
    )
    return f"<text text-anchor='{anchor}' {FONT} font-size='{size}' fill='{colour}'>{rows}</text>"


def box(corner: Point, size: Point, words: str = "", colours: Colours = PLAIN, corner_radius: int = 6) -> str:
    (x, y), (width, height), (fill, border) = corner, size, colours
    shape = (
        f"<rect x='{x:.0f}' y='{y:.0f}' width='{width:.0f}' height='{height:.0f}' rx='{corner_radius}' "
        f"fill='{fill}' stroke='{border}' stroke-width='1.5'/>"
    )
    return shape + (text((x + width / 2, y + height / 2 + 5), words) if words else "")


def title(corner: Point, width: float, words: str) -> str:
    """The name of a box that has others inside, at its upper edge."""
    return text((corner[0] + width / 2, corner[1] + 19), words, size=12, colour=FAINT)


def arrow(points: Sequence[Point], words: str = "", at: Point | None = None, dashed: bool = False) -> str:
    places = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
    dashes = " stroke-dasharray='5 4'" if dashed else ""
    line = (
        f"<polyline points='{places}' fill='none' stroke='{INK}' stroke-width='1.3'{dashes} "
        "marker-end='url(#head)'/>"
    )
    if not words:
        return line
    middle = ((points[0][0] + points[-1][0]) / 2, (points[0][1] + points[-1][1]) / 2 - 7)
    return line + text(at or middle, words, size=12)


def line(start: Point, end: Point, colour: str = FAINT, dashed: bool = False) -> str:
    dashes = " stroke-dasharray='4 4'" if dashed else ""
    return (
        f"<line x1='{start[0]:.0f}' y1='{start[1]:.0f}' x2='{end[0]:.0f}' y2='{end[1]:.0f}' "
        f"stroke='{colour}' stroke-width='1.2'{dashes}/>"
    )


def cells(corner: Point, labels: Sequence[str], colours: Sequence[Colours], size: Point = (44, 30)) -> str:
    """A row of boxes without space between them."""
    return "".join(
        box((corner[0] + number * size[0], corner[1]), size, label, colours[number], 0)
        for number, label in enumerate(labels)
    )


def picture(width: float, height: float, parts: Iterable[str]) -> str:
    head = (
        "<defs><marker id='head' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' markerHeight='8' "
        f"orient='auto'><path d='M0,0 L8,4 L0,8 z' fill='{INK}'/></marker></defs>"
    )
    size = f"viewBox='0 0 {width:.0f} {height:.0f}' width='{width:.0f}' height='{height:.0f}'"
    background = f"<rect width='{width:.0f}' height='{height:.0f}' fill='white'/>"
    return "\n".join(
        [f"<svg xmlns='http://www.w3.org/2000/svg' {size}>", head, background, *parts, "</svg>\n"]
    )


def sequence(actors: Sequence[str], messages: Sequence[Message], apart: float = 210) -> str:
    """Who sends what to whom, from top to bottom."""
    columns = {actor: 90 + number * apart for number, actor in enumerate(actors)}
    height = 90 + 40 * len(messages)
    parts = [box((x - 75, 14), (150, 32), actor, BLUE) for actor, x in columns.items()]
    parts += [line((x, 46), (x, height - 16), dashed=True) for x in columns.values()]
    for number, message in enumerate(messages):
        y = 84 + 40 * number
        start, end = columns[message.sender], columns[message.receiver]
        if start == end:
            width = 14 + 7 * max(map(len, message.words.split("\n")))
            parts.append(box((start - width / 2, y - 18), (width, 28), message.words, ORANGE))
        else:
            parts.append(arrow([(start, y), (end, y)], message.words, dashed=message.is_answer))
    return picture(180 + apart * (len(actors) - 1), height, parts)


STATE = (150.0, 40.0)


def states(size: Point, places: dict[str, Point], moves: Sequence[Move]) -> str:
    """A state machine; `places` has the middle of each state."""
    parts = [_move(places, move) for move in moves]
    for name, (x, y) in places.items():
        parts.append(box((x - STATE[0] / 2, y - STATE[1] / 2), STATE, name, BLUE, 18))
    return picture(*size, parts)


def _move(places: dict[str, Point], move: Move) -> str:
    (x1, y1), (x2, y2) = places[move.start], places[move.end]
    length = math.hypot(x2 - x1, y2 - y1)
    aside = ((y1 - y2) / length * move.bend, (x2 - x1) / length * move.bend)
    first, last = (x1 + aside[0], y1 + aside[1]), (x2 + aside[0], y2 + aside[1])
    points = [_edge(first, last, (x1, y1)), _edge(last, first, (x2, y2))]
    middle = (
        (points[0][0] + points[1][0]) / 2 + move.words_at[0],
        (points[0][1] + points[1][1]) / 2 + move.words_at[1],
    )
    return arrow(points, move.words, at=middle)


def _edge(inside: Point, outside: Point, middle: Point) -> Point:
    """Where the line from `inside` to `outside` leaves the box around `middle`."""
    dx, dy = outside[0] - inside[0], outside[1] - inside[1]
    shares = []
    for step, position, centre, half in (
        (dx, inside[0], middle[0], STATE[0] / 2),
        (dy, inside[1], middle[1], STATE[1] / 2),
    ):
        if step:
            shares.append((centre + math.copysign(half, step) - position) / step)
    share = min(shares)
    return inside[0] + dx * share, inside[1] + dy * share
