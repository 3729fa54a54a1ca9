"""Reads a schema that is written as in CREATE TABLE, without Spark: `id long, tags array<string>`.

Spark itself reads it when a query starts. This finds mistakes before, and the names of the columns."""

import re
from collections.abc import Iterator

from barnabas.spark.pipeline.problems import meant

PLAIN_TYPES = (
    *("string", "long", "bigint", "int", "integer", "short", "smallint", "byte", "tinyint", "boolean"),
    *("double", "float", "real", "decimal", "dec", "numeric", "date", "timestamp", "timestamp_ntz"),
    *("timestamp_ltz", "binary", "char", "character", "varchar", "void", "variant", "time", "interval"),
)
NESTED_TYPES = ("array", "map", "struct")
_WITH_NUMBERS = ("decimal", "dec", "numeric", "char", "character", "varchar", "time")
_WORD = re.compile(r"\w+|`(?:[^`]|``)+`", re.ASCII)
_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?\*/)|(?P<word>\w+|`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<sign>[<>(),:])",
    re.ASCII | re.DOTALL,
)


class SchemaMistake(ValueError):
    """The end of a sentence that begins with the name of the schema."""


def columns_in(text: str) -> tuple[str, ...]:
    """The names of the columns; SchemaMistake if Spark could not read the text."""
    reading = _Reading(list(_tokens(text)))
    names = tuple(reading.columns(end=""))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SchemaMistake(f"names the column {twice} twice.")
    return names


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise SchemaMistake(f"cannot be read at {text[position : position + 20]!r}.")
        position = match.end()
        if match.lastgroup != "space":
            yield match[0]


class _Reading:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._next = 0

    def columns(self, end: str) -> Iterator[str]:
        """Columns or fields, with commas between them, up to the sign `end`."""
        while True:
            name = self._take()
            if not _WORD.fullmatch(name):
                raise SchemaMistake(f"needs the name of a column instead of {name or 'its end'!r}.")
            if self._peek() == ":":
                self._take()
            self._type(name)
            self._rest_of_column()
            yield name.strip("`").replace("``", "`")
            if self._peek() == end:
                return
            self._expect(",", f"after the type of {name}")

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _expect(self, sign: str, where: str) -> None:
        token = self._take()
        if token != sign:
            raise SchemaMistake(f"needs {sign!r} {where}, but has {token or 'its end'!r} there.")

    def _type(self, column: str) -> None:
        written = self._take()
        kind = written.lower()
        if not kind or kind in (",", ">", ")"):
            raise SchemaMistake(f"has no type for the column {column}: write, for example, {column} string.")
        if kind not in PLAIN_TYPES and kind not in NESTED_TYPES:
            hint = meant(kind, (*PLAIN_TYPES, *NESTED_TYPES))
            raise SchemaMistake(f"has the type {written!r} for the column {column}; {hint}")
        if kind in NESTED_TYPES:
            self._nested(kind, column)
        elif kind in _WITH_NUMBERS and self._peek() == "(":
            while self._peek() not in (")", ""):
                self._take()
            self._expect(")", f"after the type of {column}")
        elif kind == "interval":
            while self._peek().isalpha():
                self._take()

    def _nested(self, kind: str, column: str) -> None:
        self._expect("<", f"after {kind}")
        if kind == "struct":
            for _ in self.columns(end=">") if self._peek() != ">" else ():
                continue
        else:
            self._type(column)
        if kind == "map":
            self._expect(",", "between the types of a map")
            self._type(column)
        self._expect(">", f"after the types of {kind}")

    def _rest_of_column(self) -> None:
        if self._peek().lower() == "not":
            self._take()
            if self._take().lower() != "null":
                raise SchemaMistake("has NOT without NULL.")
        if self._peek().lower() == "comment":
            self._take()
            self._take()
