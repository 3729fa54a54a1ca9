"""A kernel as the interpreter runs it: its source beside the compiled module, to be held against it."""

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any


def interpreted(compiled: ModuleType) -> Any:
    """The same kernel from its source."""
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
