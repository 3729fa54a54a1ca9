"""pyarrow, imported when it is needed: it is large, and most who use this package do without."""

from importlib import import_module
from typing import Any


def pyarrow() -> Any:
    """The module, or a sentence that says how to get it."""
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise ImportError("Arrow tables need pyarrow: pip install 'barnabas[arrow]'") from error


def compute() -> Any:
    """pyarrow.compute."""
    pyarrow()
    return import_module("pyarrow.compute")
