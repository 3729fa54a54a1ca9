"""Which messages a request wants to see. A message is looked at as the page would show it, so what a mask
hides cannot be found by guessing."""

from typing import Any

import re2

from barnabas.console.decoding import Decoded
from barnabas.console.failures import bad_request
from barnabas.console.json_paths import JsonFilter
from barnabas.console.shapes import Shape, Text

FILTER_LENGTH_MAX = 1000

FILTER_QUERY: dict[str, Shape] = {
    "key": Text("the key has this text", default="", longest=FILTER_LENGTH_MAX),
    "value": Text("the value has this text", default="", longest=FILTER_LENGTH_MAX),
    "header": Text(
        "a header has this text; NAME=TEXT asks for one header", default="", longest=FILTER_LENGTH_MAX
    ),
    "text": Text("the key, the value or a header has this text", default="", longest=FILTER_LENGTH_MAX),
    "regex": Text("the key or the value matches this (RE2)", default="", longest=FILTER_LENGTH_MAX),
    "json_path": Text("such as $.amount >= 100 or $.state", default="", longest=FILTER_LENGTH_MAX),
}


class Filters:
    def __init__(self, query: dict[str, Any]) -> None:
        self._key, self._value = query["key"], query["value"]
        self._header, self._text = query["header"], query["text"]
        self._regex = _compiled(query["regex"]) if query["regex"] else None
        self._json = JsonFilter(query["json_path"]) if query["json_path"] else None
        self.is_empty = not any(query[name] for name in FILTER_QUERY)

    def matches(self, key: Decoded, value: Decoded, headers: list[dict[str, Any]]) -> bool:
        texts = (key.text or "", value.text or "")
        return (
            self.may_match(texts)
            and (not self._header or self._has_header(headers))
            and (not self._text or self._has_text(texts, headers))
            and (self._json is None or any(map(self._json_matches, (value, key))))
        )

    def may_match(self, texts: tuple[str, str]) -> bool:
        """What can be said from the texts of key and value alone; most messages are left out by it."""
        return (
            self._key in texts[0]
            and self._value in texts[1]
            and (self._regex is None or any(self._regex.search(each) for each in texts))
        )

    def _has_header(self, headers: list[dict[str, Any]]) -> bool:
        name, equals, text = self._header.partition("=")
        if equals:
            return any(each["name"] == name and text in (each["text"] or "") for each in headers)
        return any(name in each["name"] or name in (each["text"] or "") for each in headers)

    def _has_text(self, texts: tuple[str, str], headers: list[dict[str, Any]]) -> bool:
        return any(self._text in each for each in texts) or any(
            self._text in each["name"] or self._text in (each["text"] or "") for each in headers
        )

    def _json_matches(self, decoded: Decoded) -> bool:
        assert self._json is not None
        return decoded.kind in ("json", "avro") and self._json.matches(decoded.json)


def _compiled(expression: str) -> Any:
    """RE2 needs time in proportion to the text, whatever the expression is."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise bad_request(f"{expression[:100]!r} is not a regular expression: {text}.") from None
