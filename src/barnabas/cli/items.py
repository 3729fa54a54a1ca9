"""Work on many things of which some may fail: all are tried, and each failure is told."""

import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

from barnabas.client.admin.types import AdminError
from barnabas.errors import KafkaError

_K = TypeVar("_K")
_V = TypeVar("_V")


def settled(ask: Callable[[], Mapping[_K, _V] | None]) -> tuple[dict[_K, _V], dict[_K, KafkaError]]:
    """What came of a call of the admin client: the results and the errors, by thing."""
    try:
        return dict(ask() or {}), {}
    except AdminError as error:
        return error.results, error.errors


def tell(errors: Mapping[_K, KafkaError]) -> int:
    """One sentence per thing on standard error; gives the exit code."""
    for thing, error in errors.items():
        print(f"Error: {thing}: {error.message}", file=sys.stderr)
    return 1 if errors else 0
