"""Paths into JSON values, such as $.customer.cards[0].number: a small part of JSONPath.

$ is the value itself, .name and ['name'] a field, [2] an item (negative: from the end), [*] and .* all of
them, ..name the fields with this name at any depth. Filters compare what a path finds with a JSON value:
$.amount >= 100, $.state == "paid"; without a comparison, they ask whether the path finds anything."""

import json
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from barnabas.console.failures import bad_request

STEPS_MAX = 50
DEPTH_MAX = 100

_STEP = re.compile(r"(\.\.?)(\*|[^.\[\]\s=!<>]+)|\[(\*|-?\d{1,9}|'[^']*'|\"[^\"]*\")\]")
_COMPARISON = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


class Anywhere(NamedTuple):
    """A field at any depth."""

    name: str


Step = str | int | None | Anywhere
"""A field, an item, or None for all of them."""


class JsonPath:
    def __init__(self, text: str) -> None:
        self.text = text
        self.steps, rest = _steps(text)
        if rest:
            raise bad_request(f"{text[:100]!r} is not a path such as $.customer.name or $.items[0].price.")

    def find(self, value: Any) -> list[Any]:
        """What the path finds."""
        return [found for _, _, found in _walk(value, self.steps)]

    def replace(self, value: Any, replacement: Any) -> Any:
        """The value with another one at the places that the path finds; it is changed in place."""
        if not self.steps:
            return replacement
        for container, key, _ in list(_walk(value, self.steps)):
            container[key] = replacement
        return value


class JsonFilter:
    """A path, and perhaps a comparison."""

    def __init__(self, text: str) -> None:
        self._compare: Callable[[Any, Any], bool] | None = None
        self._operand: Any = None
        self._steps, rest = _steps(text.strip())
        if not rest:
            return
        comparison = _COMPARISON.match(rest)
        if comparison is None:
            raise bad_request(f"{text[:100]!r} is not a path with a comparison, such as $.amount >= 100.")
        self._compare = _OPERATORS[comparison[1]]
        literal = rest[comparison.end() :].strip()
        try:
            self._operand = json.loads(literal)
        except ValueError:
            # 'text' and bare words are what people type.
            self._operand = literal.strip("'")

    def matches(self, value: Any) -> bool:
        found = [each for _, _, each in _walk(value, self._steps)]
        if self._compare is None:
            return bool(found)
        return any(self._holds(each) for each in found)

    def _holds(self, found: Any) -> bool:
        assert self._compare is not None
        try:
            return bool(self._compare(found, self._operand))
        except TypeError:
            # Such as a text and a number.
            return False


def _steps(text: str) -> tuple[list[Step], str]:
    """The steps of the path at the start of the text, and the rest of the text."""
    if not text.startswith("$"):
        raise bad_request(f"{text[:100]!r} is not a path: a path begins with $, such as $.customer.name.")
    steps: list[Step] = []
    position = 1
    while (match := _STEP.match(text, position)) is not None:
        dots, name, item = match.groups()
        if name == "*" or item == "*":
            steps.append(None)
        elif dots == "..":
            steps.append(Anywhere(name))
        elif name is not None:
            steps.append(name)
        else:
            steps.append(item[1:-1] if item[0] in "'\"" else int(item))
        position = match.end()
        if len(steps) > STEPS_MAX:
            raise bad_request(f"A path must not have more than {STEPS_MAX} steps.")
    return steps, text[position:]


def _walk(value: Any, steps: list[Step]) -> Iterator[tuple[Any, Any, Any]]:
    """(container, key, value) of each place that the steps lead to."""
    places: list[tuple[Any, Any, Any]] = [(None, None, value)]
    for step in steps:
        places = [place for _, _, each in places for place in _children(each, step)]
    yield from places


def _children(value: Any, step: Step) -> Iterator[tuple[Any, Any, Any]]:
    if isinstance(step, Anywhere):
        yield from _anywhere(value, step.name, DEPTH_MAX)
    elif isinstance(value, dict):
        keys = list(value) if step is None else [step] if step in value else []
        for key in keys:
            yield value, key, value[key]
    elif isinstance(value, list):
        if step is None:
            yield from ((value, number, each) for number, each in enumerate(value))
        elif isinstance(step, int) and -len(value) <= step < len(value):
            yield value, step, value[step]


def _anywhere(value: Any, name: str, depth: int) -> Iterator[tuple[Any, Any, Any]]:
    for container, key, child in _children(value, None):
        if key == name:
            yield container, key, child
        elif depth:
            yield from _anywhere(child, name, depth - 1)
