"""Memory that is not cleared, compiled and interpreted: as large as asked for, and the caller's own."""

import importlib.machinery
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from barnabas.kernels import memory as compiled


def interpreted() -> Any:
    path = Path(str(compiled.__file__)).with_name("memory.py")
    loader = importlib.machinery.SourceFileLoader("interpreted_memory", str(path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    loaded = importlib.util.module_from_spec(spec)
    loader.exec_module(loaded)
    return loaded


BOTH = pytest.mark.parametrize("kernel", [compiled, interpreted()], ids=["compiled", "interpreted"])


@BOTH
@pytest.mark.parametrize("size", [0, 1, 4096, 1 << 20])
def test_a_buffer_is_as_large_as_asked_for_and_can_be_filled(kernel: Any, size: int) -> None:
    found = kernel.uncleared(size)
    assert type(found) is bytearray and len(found) == size
    found[:] = b"x" * size
    found += b"more"
    assert found == b"x" * size + b"more"


@BOTH
def test_a_negative_size_is_refused(kernel: Any) -> None:
    with pytest.raises(ValueError, match="not negative"):
        kernel.uncleared(-1)
