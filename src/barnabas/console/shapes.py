"""The shapes of parameters and bodies: one declaration checks what comes in and describes it in OpenAPI.

Every shape has a bound, so that no request can be larger than the console is ready to process."""

from collections.abc import Mapping
from typing import Any, Protocol

from barnabas.console.failures import bad_request

NAME_MAX = 1024
TEXT_MAX = 1 << 20
LIST_MAX = 10_000
LONG_MAX = 2**63 - 1

REQUIRED: Any = object()


class Shape(Protocol):
    default: Any
    doc: str

    def read(self, value: Any, where: str) -> Any:
        """The value, checked; from JSON, or from the text of a query parameter."""
        ...

    def schema(self) -> dict[str, Any]: ...


class Text:
    def __init__(self, doc: str = "", *, default: Any = REQUIRED, longest: int = NAME_MAX) -> None:
        self.doc, self.default, self._longest = doc, default, longest

    def read(self, value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise bad_request(f"{where} must be a text.")
        if len(value) > self._longest:
            raise bad_request(f"{where} is longer than {self._longest} characters.")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise bad_request(f"{where} has characters that are not valid Unicode.") from None
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self._longest}


class Whole:
    """A whole number, also as the text of a query parameter."""

    def __init__(
        self, doc: str = "", *, default: Any = REQUIRED, least: int = 0, most: int = LONG_MAX
    ) -> None:
        self.doc, self.default, self._least, self._most = doc, default, least, most

    def read(self, value: Any, where: str) -> int:
        if isinstance(value, str) and len(value) < 25 and value.removeprefix("-").isdecimal():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise bad_request(f"{where} must be a whole number.")
        if not self._least <= value <= self._most:
            raise bad_request(f"{where} must be between {self._least} and {self._most}.")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self._least, "maximum": self._most}


class Number:
    def __init__(self, doc: str = "", *, default: Any = REQUIRED) -> None:
        self.doc, self.default = doc, default

    def read(self, value: Any, where: str) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise bad_request(f"{where} must be a number.")
        return float(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "number"}


class Flag:
    def __init__(self, doc: str = "", *, default: Any = False) -> None:
        self.doc, self.default = doc, default

    def read(self, value: Any, where: str) -> bool:
        known = {"true": True, "1": True, "false": False, "0": False, "": False}
        if isinstance(value, str) and value.lower() in known:
            return known[value.lower()]
        if not isinstance(value, bool):
            raise bad_request(f"{where} must be true or false.")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Choice:
    def __init__(self, *options: str, doc: str = "", default: Any = REQUIRED) -> None:
        self.doc, self.default, self._options = doc, default, options

    def read(self, value: Any, where: str) -> str:
        if value not in self._options:
            raise bad_request(f"{where} must be one of {', '.join(self._options)}.")
        return str(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self._options)}


class ListOf:
    def __init__(
        self, item: Shape, doc: str = "", *, default: Any = REQUIRED, longest: int = LIST_MAX
    ) -> None:
        self.doc, self.default, self._item, self._longest = doc, default, item, longest

    def read(self, value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise bad_request(f"{where} must be a list.")
        if len(value) > self._longest:
            raise bad_request(f"{where} has more than {self._longest} items.")
        return [self._item.read(each, f"{where}[{number}]") for number, each in enumerate(value)]

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self._item.schema(), "maxItems": self._longest}


class MapOf:
    """An object with any names, whose values have one shape."""

    def __init__(self, item: Shape, doc: str = "", *, default: Any = REQUIRED) -> None:
        self.doc, self.default, self._item = doc, default, item

    def read(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict) or len(value) > LIST_MAX:
            raise bad_request(f"{where} must be an object with at most {LIST_MAX} names.")
        return {
            Text().read(name, f"A name in {where}"): self._item.read(each, f"{where}.{name[:50]}")
            for name, each in value.items()
        }

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self._item.schema()}


class Nullable:
    def __init__(self, item: Shape) -> None:
        self.doc, self.default, self._item = item.doc, None, item

    def read(self, value: Any, where: str) -> Any:
        return None if value is None else self._item.read(value, where)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self._item.schema(), {"type": "null"}]}


class Fields:
    """An object with certain names. Names that it does not know are refused: they would have no effect."""

    def __init__(self, fields: Mapping[str, Shape], doc: str = "", *, default: Any = REQUIRED) -> None:
        self.doc, self.default, self._fields = doc, default, fields

    def read(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise bad_request(f"{where} must be an object.")
        for name in value:
            if name not in self._fields:
                raise bad_request(f"{where} must not have {name[:50]!r}.")
        prefix = "" if where == BODY else f"{where}."
        return {
            name: _read_or_default(shape, value, name, f"{prefix}{name}")
            for name, shape in self._fields.items()
        }

    def schema(self) -> dict[str, Any]:
        required = [name for name, shape in self._fields.items() if shape.default is REQUIRED]
        return {
            "type": "object",
            "properties": {name: described(shape) for name, shape in self._fields.items()},
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }


BODY = "The body"


def _read_or_default(shape: Shape, given: Mapping[str, Any], name: str, where: str) -> Any:
    if name in given:
        return shape.read(given[name], where)
    if shape.default is REQUIRED:
        raise bad_request(f"{where} is missing.")
    return shape.default


def described(shape: Shape) -> dict[str, Any]:
    """The schema with the description and the default."""
    schema = shape.schema()
    if shape.doc:
        schema["description"] = shape.doc
    if shape.default is not REQUIRED and shape.default is not None:
        schema["default"] = shape.default
    return schema


def read_query(shapes: Mapping[str, Shape], given: Mapping[str, str]) -> dict[str, Any]:
    """Query parameters. An empty one counts as not given; unknown ones are ignored, as browsers add some."""
    filled = {name: value for name, value in given.items() if value != ""}
    return {name: _read_or_default(shape, filled, name, name) for name, shape in shapes.items()}
