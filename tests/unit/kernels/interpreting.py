"""A kernel as the interpreter runs it: its source beside the compiled module, to be held against it."""

import importlib
import importlib.machinery
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SHARED = "barnabas.kernels.shared"


@cache
def interpreted(compiled: ModuleType) -> Any:
    """The same kernel from its source. It uses the shared kernel from its source, too: the C functions of the
    compiled one cannot be called from Python."""
    if compiled.__name__ == SHARED:
        return _load(compiled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, SHARED, interpreted(importlib.import_module(SHARED)))
        return _load(compiled)


def _load(compiled: ModuleType) -> Any:
    name = compiled.__name__.rpartition(".")[2]
    path = Path(str(compiled.__file__)).with_name(f"{name}.py")
    loader = importlib.machinery.SourceFileLoader(f"interpreted_{name}", str(path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Shaped(bytes):
    """Bytes with the one attribute of a typed memoryview that the kernels use when they run interpreted."""

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Shaped(found) if isinstance(key, slice) else found
