"""What a configuration key is: its type, default, bounds and how it may change. Pure values, no I/O.

The tables (`keys_*.py`) are lines of `honoured(...)` or `accepted(...)`, each followed by the key's
documentation. `honoured` means that this release acts on the value; `accepted` means that the value is
checked and described, but has no effect yet."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.errors import ErrorCode, KafkaError

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
DOUBLE_MAX = 1.7976931348623157e308

HIGH, MEDIUM, LOW = "high", "medium", "low"
READ_ONLY, PER_BROKER, CLUSTER_WIDE = "read-only", "per-broker", "cluster-wide"


class ConfigError(KafkaError):
    """A wrong setting or a wrong change of settings; its text is one sentence for the person who made it."""

    def __init__(self, sentence: str, code: ErrorCode = ErrorCode.INVALID_CONFIG) -> None:
        super().__init__(code, sentence)

    def __str__(self) -> str:
        return self.message


class Type(IntEnum):
    """The type of a value, numbered as in DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN, STRING, INT, SHORT, LONG = Type.BOOLEAN, Type.STRING, Type.INT, Type.SHORT, Type.LONG
DOUBLE, LIST, CLASS, PASSWORD = Type.DOUBLE, Type.LIST, Type.CLASS, Type.PASSWORD


class Source(IntEnum):
    """Where a value comes from, numbered as in DescribeConfigs."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class Check(NamedTuple):
    """A bound on a value: what is allowed, in words, and the test itself."""

    allowed: str
    test: Callable[[Any], bool]


class ConfigKey(NamedTuple):
    name: str
    type: Type
    default: Any
    check: Check | None
    importance: str
    mode: str
    doc: str = ""
    honoured: bool = False
    internal: bool = False
    synonyms: tuple[str, ...] = ()
    """For a topic key: the broker keys that give its default, most specific first."""

    @property
    def sensitive(self) -> bool:
        return self.type is Type.PASSWORD


def honoured(
    kind: Type,
    name: str,
    default: Any,
    check: Check | None = None,
    importance: str = MEDIUM,
    mode: str = READ_ONLY,
) -> ConfigKey:
    """A row for a key that this release acts on."""
    return ConfigKey(name, kind, default, check, importance, mode, "", True)


def accepted(
    kind: Type,
    name: str,
    default: Any,
    check: Check | None = None,
    importance: str = MEDIUM,
    mode: str = READ_ONLY,
) -> ConfigKey:
    """A row for a key that is checked and described, but has no effect yet."""
    return ConfigKey(name, kind, default, check, importance, mode, "", False)


def internal(key: ConfigKey) -> ConfigKey:
    """Mark a key that DescribeConfigs shows only if it is set."""
    return key._replace(internal=True)


def table(*rows_and_docs: ConfigKey | str) -> dict[str, ConfigKey]:
    """A table of rows, each followed by its documentation."""
    keys: dict[str, ConfigKey] = {}
    for row, doc in zip(rows_and_docs[::2], rows_and_docs[1::2], strict=True):
        if not isinstance(row, ConfigKey) or not isinstance(doc, str):
            raise TypeError(f"a table needs a row and then its text, not {row!r}, {doc!r}")
        keys[row.name] = row._replace(doc=doc)
    return keys


def at_least(low: float) -> Check:
    return Check(f"at least {low}", lambda value: value >= low)


def between(low: float, high: float) -> Check:
    return Check(f"from {low} to {high}", lambda value: low <= value <= high)


def between_or(low: int, high: int, other: int) -> Check:
    return Check(f"from {low} to {high}, or {other}", lambda value: low <= value <= high or value == other)


def one_of(*values: str) -> Check:
    return Check(_alternatives(values), lambda value: value in values)


def one_of_any_case(*values: str) -> Check:
    return Check(_alternatives(values), lambda value: value.lower() in values)


def _alternatives(values: Sequence[str]) -> str:
    return "one of " + ", ".join(values)


NOT_EMPTY = Check("a text that is not empty", bool)
ITEMS = Check("a list without empty items", all)
SOME_ITEMS = Check(
    "a list of at least one item, without empty items", lambda items: bool(items) and all(items)
)


def items_of(*values: str) -> Check:
    return Check(f"a list of {', '.join(values)}", lambda items: all(item in values for item in items))


def some_items_of(*values: str) -> Check:
    return Check(
        f"a list of at least one of {', '.join(values)}",
        lambda items: bool(items) and all(item in values for item in items),
    )


def _names_replicas(items: Sequence[str]) -> bool:
    if list(items) == ["*"]:
        return True
    pairs = [item.partition(":") for item in items]
    return all(partition.isdecimal() and broker.isdecimal() for partition, _, broker in pairs)


THROTTLED_REPLICAS = Check("* or a list of partition:broker items", _names_replicas)


def inherits(key: ConfigKey, *broker_keys: str) -> ConfigKey:
    """Name the broker keys that give a topic key its default, most specific first."""
    return key._replace(synonyms=broker_keys)
