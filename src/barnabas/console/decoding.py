"""Keys and values as people read them: text, JSON, Avro, numbers or hexadecimal digits.

Nothing here trusts a message: whatever its bytes are, the result is text. Masks are applied here, before a
filter or a page sees the text."""

import io
import json
import re
import struct
from importlib import import_module
from typing import Any, NamedTuple

from barnabas.client.schema_registry import Registry, RegistryError
from barnabas.console.failures import bad_request
from barnabas.console.masks import MASKED, TopicMasks

# As these, bytes that are a text are shown as that text.
_TEXTS = {"auto", "text", "json"}
FORMATS = ("auto", "text", "json", "hex", "avro", "number")
HEADERS_MAX = 100
HEADER_BYTES_MAX = 4096
# The JSON of a larger value is not sent as an object too; its text is.
JSON_BYTES_MAX = 1 << 20

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_FRAME = struct.Struct(">bI")
_NUMBER_SIZES = (1, 2, 4, 8)


class Decoded(NamedTuple):
    """`kind` says how it was read. `text` is whole; what is sent may be cut."""

    kind: str
    text: str | None
    json: Any
    size: int
    problem: str | None = None

    def item(self, text_max: int) -> dict[str, Any]:
        text = self.text
        is_cut = text is not None and len(text) > text_max
        return {
            "as": self.kind,
            "text": text[:text_max] if is_cut and text is not None else text,
            "json": None if is_cut else self.json,
            "size": self.size,
            "is_null": self.kind == "null",
            "truncated": is_cut,
            "problem": self.problem,
        }


NULL = Decoded("null", None, None, 0)


class Avro:
    """Avro with the schemas of a registry, or with one given schema. Used by threads, one at a time per
    value."""

    def __init__(self, registry: Registry | None, schema_text: str | None = None) -> None:
        self._registry = registry
        self._parsed: dict[int, Any] = {}
        self._given: Any = None
        if schema_text:
            try:
                self._given = _fastavro().parse_schema(json.loads(schema_text))
            except ImportError as error:
                raise bad_request(str(error)) from None
            except Exception as error:
                # The parser fails in many ways; the text is the cause of all of them.
                raise bad_request(f"The Avro schema is malformed: {error}.") from None

    @property
    def has_registry(self) -> bool:
        return self._registry is not None

    def decode(self, data: bytes) -> Any:
        """The value; raises ValueError with a reason. A given schema is for values with and without a
        frame."""
        is_framed = len(data) >= _FRAME.size and data[0] == 0
        try:
            if self._given is not None:
                try:
                    return _read(data, self._given)
                except ValueError:
                    if not is_framed:
                        raise
                    return _read(data[_FRAME.size :], self._given)
            if self._registry is None:
                raise ValueError("there is no schema: start the console with --schema-registry, or give one")
            if not is_framed:
                raise ValueError("it has no schema id: the first byte is not 0")
            return _read(data[_FRAME.size :], self._schema(_FRAME.unpack_from(data)[1]))
        except (RegistryError, ImportError) as error:
            raise ValueError(str(error)) from error

    def _schema(self, schema_id: int) -> Any:
        if schema_id not in self._parsed:
            assert self._registry is not None
            registered = self._registry.by_id(schema_id)
            named: dict[str, Any] = {}
            for each in registered.references:
                _fastavro().parse_schema(each, named_schemas=named)
            self._parsed[schema_id] = _fastavro().parse_schema(registered.schema, named_schemas=named)
        return self._parsed[schema_id]


class Decoder:
    """How one request wants to see keys and values, and what it must not see."""

    def __init__(self, key_as: str, value_as: str, avro: Avro, masks: TopicMasks) -> None:
        self._key_as, self._value_as = key_as, value_as
        self._avro = avro
        self._masks = masks

    def plain_texts(self, key: bytes | None, value: bytes | None) -> tuple[str, str] | None:
        """The texts of a key and a value, if it is clear without decoding them what they are."""
        if self._masks.hides_key or self._masks.has_paths or not {self._key_as, self._value_as} <= _TEXTS:
            return None
        found = "" if key is None else _text_of(key), "" if value is None else _text_of(value)
        return None if found[0] is None or found[1] is None else (found[0], found[1])

    def key(self, data: bytes | None) -> Decoded:
        if data is None:
            return NULL
        if self._masks.hides_key:
            return Decoded("masked", MASKED, None, len(data))
        return _decoded(data, self._key_as, self._avro)

    def value(self, data: bytes | None) -> Decoded:
        if data is None:
            return NULL
        if self._masks.has_paths:
            return self._masked(data)
        return _decoded(data, self._value_as, self._avro)

    def _masked(self, data: bytes) -> Decoded:
        """Only as JSON: other views of the bytes would show what is hidden."""
        found = _auto(data, self._avro) if self._avro.has_registry else _json(data)
        if found is None or found.kind not in ("json", "avro"):
            return Decoded("masked", MASKED, None, len(data))
        value = self._masks.masked(json.loads(found.text or "null"))
        return Decoded(found.kind, json.dumps(value, ensure_ascii=False), value, len(data))

    def headers(self, headers: list[tuple[str, bytes | None]]) -> list[dict[str, Any]]:
        return [self._header(name, value) for name, value in headers[:HEADERS_MAX]]

    def _header(self, name: str, value: bytes | None) -> dict[str, Any]:
        if value is None:
            return {"name": name, "text": None, "hex": None}
        if self._masks.hides_header(name):
            return {"name": name, "text": MASKED, "hex": None}
        cut = value[:HEADER_BYTES_MAX]
        return {"name": name, "text": _text_of(cut), "hex": cut.hex()}


def _decoded(data: bytes, wanted: str, avro: Avro) -> Decoded:
    size = len(data)
    if wanted == "auto":
        return _auto(data, avro)
    if wanted == "text":
        return Decoded("text", data.decode(errors="replace"), None, size)
    if wanted == "number" and size in _NUMBER_SIZES:
        number = int.from_bytes(data, "big", signed=True)
        return Decoded("number", str(number), number, size)
    if wanted == "json":
        found = _json(data)
        return found or Decoded("text", data.decode(errors="replace"), None, size, "It is not JSON.")
    if wanted == "avro":
        return _as_avro(data, avro)
    problem = "A number has 1, 2, 4 or 8 bytes." if wanted == "number" else None
    return Decoded("hex", data.hex(), None, size, problem)


def _auto(data: bytes, avro: Avro) -> Decoded:
    if data[:1] == b"\0" and avro.has_registry:
        found = _as_avro(data, avro)
        if found.kind == "avro":
            return found
    if data[:1].isspace() or data[:1] in (b"{", b"["):
        found_json = _json(data)
        if found_json is not None:
            return found_json
    text = _text_of(data)
    return (
        Decoded("hex", data.hex(), None, len(data))
        if text is None
        else Decoded("text", text, None, len(data))
    )


def _as_avro(data: bytes, avro: Avro) -> Decoded:
    try:
        text = json.dumps(avro.decode(data), default=_plain, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError, TypeError) as error:
        return Decoded("hex", data.hex(), None, len(data), f"It cannot be decoded as Avro: {error}.")
    return Decoded("avro", text, _limited(text), len(data))


def _json(data: bytes) -> Decoded | None:
    try:
        text = data.decode()
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return Decoded("json", text, value if len(text) <= JSON_BYTES_MAX else None, len(data))


def _limited(text: str) -> Any:
    return json.loads(text) if len(text) <= JSON_BYTES_MAX else None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _text_of(data: bytes) -> str | None:
    """The text, if the bytes are one: UTF-8 without control characters other than tabs and line ends."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


def _read(data: bytes, schema: Any) -> Any:
    stream = io.BytesIO(data)
    try:
        value = _fastavro().schemaless_reader(stream, schema)
    except Exception as error:
        # With malformed data the reader fails in many ways; the value is the cause of all of them.
        raise ValueError(f"the data is malformed: {error or type(error).__name__}") from error
    if stream.tell() != len(data):
        raise ValueError(f"there are {len(data) - stream.tell()} extra bytes after the data")
    return value


def _plain(value: Any) -> Any:
    """What JSON has no type for: bytes as hexadecimal digits, dates and decimals as text."""
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


def _fastavro() -> Any:
    try:
        return import_module("fastavro")
    except ImportError as error:
        raise ImportError("Avro needs fastavro: pip install fastavro") from error
