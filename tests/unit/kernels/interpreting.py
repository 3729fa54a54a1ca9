"""Loads a kernel from its source, so that tests can compare it with the compiled one."""

import importlib.machinery
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import barnabas.kernels

# Kernels that other kernels use, in the order in which they use each other.
SHARED = ("barnabas.kernels.shared", "barnabas.kernels.hashing", "barnabas.kernels.plans")


def interpreted(compiled: ModuleType) -> Any:
    """The same kernel from its source. It uses the shared kernels from their sources, too: the C functions of
    the compiled ones cannot be called from Python."""
    return _load(compiled.__name__)


@cache
def _load(name: str) -> Any:
    short_name = name.rpartition(".")[2]
    path = Path(barnabas.kernels.__path__[0]) / f"{short_name}.py"
    loader = importlib.machinery.SourceFileLoader(f"interpreted_{short_name}", str(path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    used = SHARED[: SHARED.index(name)] if name in SHARED else SHARED
    with pytest.MonkeyPatch.context() as patch:
        for each in used:
            patch.setitem(sys.modules, each, _load(each))
        loader.exec_module(module)
    return module


class Shaped(bytes):
    """Bytes with the one attribute of a typed memoryview that the kernels use when they run interpreted."""

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __getitem__(self, key: Any) -> Any:
        item = super().__getitem__(key)
        return Shaped(item) if isinstance(key, slice) else item
