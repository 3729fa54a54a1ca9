"""KEY=VALUE options and properties files of the console tools: settings of a client, a reader, a formatter.

Values are not stripped: a separator may be a space."""

import argparse
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from barnabas.cli.failures import ToolError
from barnabas.config.properties import load_properties

# Java classes cannot be run here. The tools do not convert bytes, so these settings can be ignored.
_OF_JAVA = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer")


def add_pairs(parser: argparse.ArgumentParser, flags: tuple[str, ...], dest: str, help: str) -> None:
    """An option KEY=VALUE that may be repeated."""
    parser.add_argument(
        *flags, dest=dest, action="append", default=[], metavar="KEY=VALUE", help=f"{help}; may be repeated"
    )


def read_pairs(pairs: list[str], option: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise ToolError(f"{option} {pair!r} must be written as KEY=VALUE.")
        values[key.strip()] = value
    return values


def read_properties(file: Path | None, pairs: list[str], option: str) -> dict[str, str]:
    """The properties of the file and of the command line; the command line wins."""
    read = {} if file is None else load_properties(file.read_text())
    return {**read, **read_pairs(pairs, option)}


def known_settings(given: Mapping[str, str], keys: Mapping[str, object]) -> dict[str, Any]:
    """The settings that the client knows. Others are ignored with a warning, as in Kafka's tools: scripts may
    have keys of other versions."""
    settings: dict[str, Any] = {}
    for name, value in given.items():
        if name in _OF_JAVA:
            continue
        if name in keys:
            settings[name] = value
            continue
        near = get_close_matches(name, keys, n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        print(f"Warning: {name} is not a setting of this client and is ignored.{meant}", file=sys.stderr)
    return settings


def as_bytes(text: str) -> bytes:
    """The bytes that the shell has passed, unchanged."""
    return text.encode("utf-8", "surrogateescape")


def as_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def is_true(text: str) -> bool:
    return text.strip().lower() == "true"
