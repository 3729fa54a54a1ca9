"""How a record is printed: Kafka's DefaultMessageFormatter and others, on bytes, or a line of JSON.

A formatter is a callable that returns the bytes to print for a record, or None to print nothing."""

import base64
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.cli.console_consumer.deserializers import Deserializer, deserializer_of
from barnabas.cli.failures import ToolError
from barnabas.cli.properties import as_bytes, as_text, is_true
from barnabas.kernels.record_decode import ConsumerRecord

Formatter = Callable[[ConsumerRecord], bytes | None]

TIMESTAMP_TYPES = {0: "CreateTime", 1: "LogAppendTime"}


def formatter_of(name: str | None, properties: Mapping[str, str]) -> Formatter:
    """The formatter with the name of Kafka's class. The package, before the last dot or dollar, is
    ignored."""
    from barnabas.cli.console_consumer.internal_topics import INTERNAL_FORMATTERS

    short = "DefaultMessageFormatter" if name is None else name.replace("$", ".").rpartition(".")[2]
    if short in INTERNAL_FORMATTERS:
        return INTERNAL_FORMATTERS[short]
    known: dict[str, Callable[[Mapping[str, str]], Formatter]] = {
        "DefaultMessageFormatter": DefaultFormatter,
        "LoggingMessageFormatter": LoggingFormatter,
        "NoOpMessageFormatter": lambda properties: lambda record: None,
    }
    if short not in known:
        names = ", ".join([*known, *INTERNAL_FORMATTERS])
        raise ToolError(
            f"--formatter {name}: Java classes cannot be run here. The known names are {names}; "
            "use --json for programs."
        )
    return known[short](properties)


class DefaultFormatter:
    """Prints the selected parts of a record, with separators between them."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        prints = {part: is_true(properties.get(f"print.{part}", "false")) for part in _PARTS}
        prints["value"] = is_true(properties.get("print.value", "true"))
        self._parts = [getattr(self, f"_{part}") for part in _PARTS if prints[part]]
        self._separator = as_bytes(properties.get("key.separator", "\t"))
        self._line_end = as_bytes(properties.get("line.separator", "\n"))
        self._headers_separator = as_bytes(properties.get("headers.separator", ","))
        self._null = as_bytes(properties.get("null.literal", "null"))
        self._key_deserializer = deserializer_of(properties, "key.deserializer")
        self._value_deserializer = deserializer_of(properties, "value.deserializer")
        self._header_deserializer = deserializer_of(properties, "headers.deserializer")

    def __call__(self, record: ConsumerRecord) -> bytes | None:
        if not self._parts:
            return None
        return self._separator.join([part(record) for part in self._parts]) + self._line_end

    def _timestamp(self, record: ConsumerRecord) -> bytes:
        kind = TIMESTAMP_TYPES.get(record.timestamp_type)
        return b"NO_TIMESTAMP" if kind is None else f"{kind}:{record.timestamp}".encode()

    def _partition(self, record: ConsumerRecord) -> bytes:
        return b"Partition:%d" % record.partition

    def _offset(self, record: ConsumerRecord) -> bytes:
        return b"Offset:%d" % record.offset

    def _delivery(self, record: ConsumerRecord) -> bytes:
        # Only consumers of share groups count deliveries.
        return b"Delivery:NOT_PRESENT"

    def _epoch(self, record: ConsumerRecord) -> bytes:
        return b"Epoch:NOT_PRESENT" if record.leader_epoch < 0 else b"Epoch:%d" % record.leader_epoch

    def _headers(self, record: ConsumerRecord) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self._headers_separator.join(
            as_bytes(name) + b":" + self._shown(self._header_deserializer, value)
            for name, value in record.headers
        )

    def _key(self, record: ConsumerRecord) -> bytes:
        return self._shown(self._key_deserializer, record.key)

    def _value(self, record: ConsumerRecord) -> bytes:
        return self._shown(self._value_deserializer, record.value)

    def _shown(self, deserializer: Deserializer | None, data: bytes | None) -> bytes:
        if data is None:
            return self._null
        return data if deserializer is None else deserializer(data)


_PARTS = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")


class LoggingFormatter(DefaultFormatter):
    """Prints each record and also logs it."""

    def __call__(self, record: ConsumerRecord) -> bytes | None:
        kind = TIMESTAMP_TYPES.get(record.timestamp_type)
        timestamp = "" if kind is None else f"{kind}:{record.timestamp}, "
        key = "null " if record.key is None else f"{as_text(record.key)}, "
        value = "null" if record.value is None else as_text(record.value)
        print(f"INFO {timestamp}key:{key}value:{value}", file=sys.stderr)
        return super().__call__(record)


def json_line(record: ConsumerRecord) -> bytes:
    """One JSON object on one line. Valid UTF-8 becomes a string; other bytes become {"base64": "..."}."""
    shown = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestampType": TIMESTAMP_TYPES.get(record.timestamp_type),
        "leaderEpoch": None if record.leader_epoch < 0 else record.leader_epoch,
        "headers": [{"key": name, "value": _json_bytes(value)} for name, value in record.headers],
        "key": _json_bytes(record.key),
        "value": _json_bytes(record.value),
    }
    return json.dumps(shown, ensure_ascii=False).encode() + b"\n"


def _json_bytes(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
