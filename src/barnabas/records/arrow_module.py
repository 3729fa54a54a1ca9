"""pyarrow, imported when it is needed: it is large, and most users of this package do not need it."""

from importlib import import_module
from typing import Any


def pyarrow() -> Any:
    """The module; if it is not installed, an ImportError that says how to install it."""
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise ImportError("Arrow tables need pyarrow: pip install 'barnabas[arrow]'") from error


def compute() -> Any:
    """pyarrow.compute."""
    pyarrow()
    return import_module("pyarrow.compute")
