"""Builds the Cython pure-Python-mode kernels; everything else is in pyproject.toml."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

kernels = sorted(path for path in Path("src/barnabas/kernels").glob("*.py") if path.stem != "__init__")
setup(
    ext_modules=cythonize(
        [
            Extension(f"barnabas.kernels.{path.stem}", [str(path)], extra_compile_args=["-O3"])
            for path in kernels
        ],
        build_dir="build",
        include_path=["src"],
        language_level=3,
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
