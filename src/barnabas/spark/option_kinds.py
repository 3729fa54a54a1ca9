"""The kinds of options: flags, counts, sizes, durations, choices. Pure values, no Spark."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

_TIME_UNITS_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
}
_SIZE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_TIME = re.compile(r"(\d{1,15})\s*([a-z]*)")
_SIZE = re.compile(r"(\d{1,15})\s*([bkmgt]?)b?")


class Kind(NamedTuple):
    """`parse` turns a text into a value and raises ValueError if it cannot; `allowed` describes the texts
    that it takes."""

    name: str
    allowed: str
    parse: Callable[[str], Any]


def duration_ms(text: str) -> int:
    """The milliseconds of a text such as 90s, 15m or 2h; a number without a unit is milliseconds."""
    match = _TIME.fullmatch(text.strip().lower())
    unit = _TIME_UNITS_MS.get(match[2] or "ms") if match else None
    if match is None or unit is None:
        raise ValueError(text)
    return int(match[1]) * unit


def size_bytes(text: str) -> int:
    """The bytes of a text such as 1048576, 64k, 8m or 1g."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or int(match[1]) == 0:
        raise ValueError(text)
    return int(match[1]) * _SIZE_UNITS[match[2]]


def _flag(text: str) -> bool:
    known = {"true": True, "false": False}.get(text.strip().lower())
    if known is None:
        raise ValueError(text)
    return known


def _count(text: str) -> int:
    value = int(text)
    if value <= 0:
        raise ValueError(text)
    return value


def _any_number(text: str) -> int:
    value = int(text)
    if value < -1:
        raise ValueError(text)
    return value


def _whole(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def _given(text: str) -> str:
    if not text.strip():
        raise ValueError(text)
    return text.strip()


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names or len(set(names)) != len(names):
        raise ValueError(text)
    return names


TEXT = Kind("text", "a text that is not empty", _given)
FLAG = Kind("flag", "true or false", _flag)
COUNT = Kind("number", "a whole number above 0", _count)
WHOLE = Kind("number", "a whole number, 0 or more", _whole)
WHOLE_OR_NONE = Kind("number", "a whole number, or -1 for none", _any_number)
NAMES = Kind("names", "a list of different names, separated by commas", _names)
DURATION = Kind("duration", "a duration such as 500ms, 90s, 15m or 2h", duration_ms)
SIZE = Kind("size", "a number of bytes such as 1048576, 64k, 8m or 1g", size_bytes)


def one_of(*words: str) -> Kind:
    def parse(text: str) -> str:
        word = text.strip().lower()
        if word not in words:
            raise ValueError(text)
        return word

    return Kind("word", "one of " + ", ".join(words), parse)
