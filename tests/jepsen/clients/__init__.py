"""The libraries whose clients a workload can use."""

from __future__ import annotations

import importlib

from tests.jepsen.clients.base import Library

# Imported when needed: a process that uses one library does not need the others.
_LIBRARIES = {"ours": "ours.Ours", "confluent": "confluent.Confluent", "java": "java.Java"}


def prepare(name: str) -> None:
    """Before the first client of this library."""
    if name == "java":
        importlib.import_module(f"{__name__}.java").prepare()


def library(name: str) -> Library:
    module, _, kind = _LIBRARIES[name].partition(".")
    made: Library = getattr(importlib.import_module(f"{__name__}.{module}"), kind)()
    return made
