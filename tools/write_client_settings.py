"""Write src/barnabas/client/settings.py from the tables of keys: `python -m tools.write_client_settings`."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from barnabas.client.keys import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS
from barnabas.config.definition import ConfigKey, Type

TARGET = Path(__file__).resolve().parent.parent / "src" / "barnabas" / "client" / "settings.py"

INTRODUCTION = '''\
"""The settings of the clients as typed keyword arguments, for editors and type checkers.

Written by `python -m tools.write_client_settings` from the tables in `client/keys.py`; change those."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypedDict

from barnabas.client.generic import Deserializer, K, V
'''

PLAIN = {
    Type.BOOLEAN: "bool",
    Type.CLASS: "Any",
    Type.DOUBLE: "float",
    Type.INT: "int",
    Type.LIST: "str | Sequence[str]",
    Type.LONG: "int",
    Type.PASSWORD: "str",
    Type.SHORT: "int",
    Type.STRING: "str",
}
# Keys whose type says less than is known about them.
SPECIAL = {
    "acks": "str | int",
    "interceptor.classes": "Any",
    "key.deserializer": "Callable[[bytes], K] | Deserializer[K] | None",
    "key.serializer": "Callable[[Any], bytes | None] | None",
    "metric.reporters": "Any",
    "partition.assignment.strategy": "Any",
    "partitioner.class": "str | Callable[[str, bytes | None, bytes | None, int], int] | None",
    "sasl.oauth.token.provider": "Callable[[], str | tuple[str, float]] | None",
    "value.deserializer": "Callable[[bytes], V] | Deserializer[V] | None",
    "value.serializer": "Callable[[Any], bytes | None] | None",
}


def module() -> str:
    common = {
        name: key for name, key in ADMIN_KEYS.items() if name in PRODUCER_KEYS and name in CONSUMER_KEYS
    }
    parts = [
        INTRODUCTION,
        _settings("CommonSettings(TypedDict", "Settings that all clients have.", common),
        _settings("AdminSettings(CommonSettings", "Settings of Admin and AsyncAdmin.", ADMIN_KEYS, common),
        _settings("ProducerSettings(CommonSettings", "Settings of producers.", PRODUCER_KEYS, common),
        _settings(
            "ConsumerSettings(CommonSettings, Generic[K, V]", "Settings of consumers.", CONSUMER_KEYS, common
        ),
    ]
    return "\n\n".join(parts)


def _settings(
    head: str, text: str, keys: Mapping[str, ConfigKey], inherited: Mapping[str, ConfigKey] | None = None
) -> str:
    lines = [f"class {head}, total=False):", f'    """{text}"""', ""]
    for name, key in sorted(keys.items()):
        if name not in (inherited or {}):
            lines += [f"    {name.replace('.', '_')}: {_type(name, key)}", *_text(key.doc)]
    return "\n".join(lines) + "\n"


def _type(name: str, key: ConfigKey) -> str:
    known = SPECIAL.get(name, PLAIN[key.type])
    return f"{known} | None" if key.default is None and "None" not in known and known != "Any" else known


def _text(doc: str) -> list[str]:
    return textwrap.wrap(f'"""{doc}"""', 104, initial_indent="    ", subsequent_indent="    ")


if __name__ == "__main__":
    TARGET.write_text(module(), encoding="utf-8")
