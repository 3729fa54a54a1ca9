"""Text to typed value and back, by the rules of a key. Pure functions."""

import re
from typing import Any

from barnabas.config.definition import ConfigError, ConfigKey, Type

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BITS = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}


SHOWN_CHARACTERS_MAX = 100


def parse(key: ConfigKey, text: str) -> Any:
    """The typed value of `text` for `key`: bool, int, float, str, or a tuple of str for a list."""
    trimmed = text.strip()
    value = _convert(key, trimmed)
    if key.check is not None and not key.check.test(value):
        raise wrong_value(key, trimmed, key.check.allowed)
    return value


def render(value: Any) -> str | None:
    """A value as Kafka's tools show it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _render_double(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def wrong_value(key: ConfigKey, text: str, allowed: str) -> ConfigError:
    # A long value must not push what is allowed out of the message.
    start = text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "..."
    shown = "the given value" if key.sensitive else repr(start)
    return ConfigError(f"{key.name} cannot be {shown}: it must be {allowed}.")


def _convert(key: ConfigKey, text: str) -> Any:
    match key.type:
        case Type.BOOLEAN:
            return _boolean(key, text)
        case Type.INT | Type.LONG | Type.SHORT:
            return _integer(key, text)
        case Type.DOUBLE:
            if not _DECIMAL.fullmatch(text):
                raise wrong_value(key, text, "a number")
            return float(text)
        case Type.LIST:
            # A repeated item counts once, as in Kafka.
            return tuple(dict.fromkeys(item.strip() for item in text.split(","))) if text else ()
        case _:
            return text


def _boolean(key: ConfigKey, text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise wrong_value(key, text, "true or false")
    return lowered == "true"


def _integer(key: ConfigKey, text: str) -> int:
    bits = _BITS[key.type]
    # A length limit first: converting a very long run of digits is slow, and none of them fits anyway.
    if not _INTEGER.fullmatch(text) or len(text) > 40:
        raise wrong_value(key, text, "a whole number")
    value = int(text)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise wrong_value(key, text, f"a whole number of {bits} bits")
    return value


def _render_double(value: float) -> str:
    """As Java writes it: plain from 0.001 up to 10 million, else one digit, a point and an exponent."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign = "-" if value < 0 else ""
    digits, _, exponent = f"{abs(value):e}".partition("e")
    for precision in range(1, 18):
        digits, _, exponent = f"{abs(value):.{precision}e}".partition("e")
        if float(f"{digits}e{exponent}") == abs(value):
            break
    return f"{sign}{digits}E{int(exponent)}"
