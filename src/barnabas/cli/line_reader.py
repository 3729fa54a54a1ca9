"""Parses lines into records, like Kafka's LineMessageReader, but on bytes: nothing is decoded."""

from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

from barnabas.cli.failures import ToolError
from barnabas.cli.properties import as_bytes, as_text, is_true

Header = tuple[str, bytes | None]

DEFAULTS = {
    "parse.key": "false",
    "key.separator": "\t",
    "parse.headers": "false",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
    "ignore.error": "false",
}
# Pairs of separators that must differ: otherwise a line would be ambiguous.
_DISTINCT = (
    ("headers.delimiter", "headers.separator"),
    ("headers.delimiter", "headers.key.separator"),
    ("headers.separator", "headers.key.separator"),
    ("null.marker", "key.separator"),
    ("null.marker", "headers.separator"),
    ("null.marker", "headers.delimiter"),
    ("null.marker", "headers.key.separator"),
)


class Line(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class LineReader:
    """If the properties enable them, a line begins with headers and a key:
    `h1:v1,h2:v2<delimiter>key<separator>value`."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        known = {**DEFAULTS, **properties}
        for one, other in _DISTINCT:
            if known.get(one) is not None and known.get(one) == known.get(other):
                raise ToolError(f"{one} and {other} must not be equal.")
        self._parses_key = is_true(known["parse.key"])
        self._parses_headers = is_true(known["parse.headers"])
        self._ignores_errors = is_true(known["ignore.error"])
        self._key_separator = _separator(known, "key.separator")
        self._headers_delimiter = _separator(known, "headers.delimiter")
        self._headers_separator = _separator(known, "headers.separator")
        self._headers_key_separator = _separator(known, "headers.key.separator")
        marker = known.get("null.marker")
        self._null_marker = None if marker is None else as_bytes(marker)

    def records(self, lines: Iterator[bytes] | BinaryIO) -> Iterator[Line]:
        for number, ended in enumerate(lines, start=1):
            # Remove one line end, \n or \r\n; all other bytes belong to the record.
            line = ended.removesuffix(b"\n").removesuffix(b"\r") if ended.endswith(b"\n") else ended
            yield self._record(line, number)

    def _record(self, line: bytes, number: int) -> Line:
        rest, headers, key = line, None, None
        if self._parses_headers:
            headers, rest = self._split(rest, self._headers_delimiter, "headers delimiter", number)
        if self._parses_key:
            key, rest = self._split(rest, self._key_separator, "key separator", number)
        if headers is None or self._is_null(headers):
            return Line(self._nullable(key), self._nullable(rest))
        return Line(self._nullable(key), self._nullable(rest), self._headers(headers, number))

    def _split(self, line: bytes, separator: bytes, what: str, number: int) -> tuple[bytes | None, bytes]:
        before, separated, after = line.partition(separator)
        if separated:
            return before, after
        if self._ignores_errors:
            return None, line
        raise ToolError(
            f"No {what} found on line number {number}: '{_shown(line)}'. "
            "With ignore.error=true, the whole line becomes the value."
        )

    def _headers(self, text: bytes, number: int) -> tuple[Header, ...]:
        # As in Kafka, empty pairs at the end are ignored.
        pairs = text.split(self._headers_separator)
        while pairs and not pairs[-1]:
            pairs.pop()
        return tuple(self._header(pair, number) for pair in pairs)

    def _header(self, pair: bytes, number: int) -> Header:
        name, separated, value = pair.partition(self._headers_key_separator)
        if not separated:
            if self._ignores_errors:
                return as_text(pair), None
            raise ToolError(
                f"No header key separator found in pair '{_shown(pair)}' on line number {number}. "
                "With ignore.error=true, it becomes a header without a value."
            )
        if self._is_null(name):
            raise ToolError(
                f"Header keys should not be equal to the null marker '{_shown(name)}' as they can't be null: "
                f"line number {number}."
            )
        return as_text(name), self._nullable(value)

    def _is_null(self, part: bytes) -> bool:
        return self._null_marker is not None and part == self._null_marker

    def _nullable(self, part: bytes | None) -> bytes | None:
        return None if part is None or self._is_null(part) else part


def _separator(properties: Mapping[str, str], name: str) -> bytes:
    if not properties[name]:
        raise ToolError(f"{name} must not be empty.")
    return as_bytes(properties[name])


def _shown(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
