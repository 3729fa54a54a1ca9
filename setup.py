"""Builds the kernels with Cython; everything else is in pyproject.toml.

docs/decisions/0014-building-the-kernels.md says what each choice costs."""

import os
import shlex
import shutil
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import PlatformError
from setuptools.modified import newer_group

FOLDER = Path("src/barnabas/kernels")
# Cython's code for memoryviews. It is as large as a large kernel, so the kernels share one copy.
VIEWS = "barnabas.kernels.views"


def extension(name: str, source: str) -> Extension:
    # With -O2 the loops over bytes are up to 1.5 times slower. Debug information would be 90 % of the files.
    flags = ["-O3", "-g0"]
    return Extension(name, [source], extra_compile_args=flags, depends=["setup.py"])


def extensions() -> list[Extension]:
    kernels = sorted(path for path in FOLDER.glob("*.py") if path.stem != "__init__")
    return [
        extension(VIEWS, str(FOLDER / "views.c")),
        *(extension(f"barnabas.kernels.{path.stem}", str(path)) for path in kernels),
    ]


def check_compiler() -> None:
    """Raise an error that says what to install if C cannot be compiled here."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "gcc")[0]
    if not shutil.which(compiler):
        raise PlatformError(
            f"the C compiler {compiler} is missing, which builds the kernels of Barnabas: install it"
            " (apt install gcc, dnf install gcc, apk add gcc musl-dev) or install from a wheel."
        )
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise PlatformError(
            "Python.h is missing, which the kernels of Barnabas need: install the headers of Python"
            " (apt install python3-dev, dnf install python3-devel) or install from a wheel."
        )


class BuildKernels(build_ext):
    def finalize_options(self) -> None:
        check_compiler()
        self.distribution.ext_modules = cythonize(
            extensions(),
            build_dir="build",
            include_path=["src"],
            language_level=3,
            shared_utility_qualified_name=VIEWS,
            # Classes of kernels belong to a process; those that can be pickled say so.
            compiler_directives={"auto_pickle": False, "emit_code_comments": False},
        )
        super().finalize_options()

    def build_extension(self, ext: Extension) -> None:
        """Build a kernel, or take it from an earlier build if nothing has changed since.

        setuptools alone would build it again for each editable installation."""
        built = Path(self.get_ext_fullpath(ext.name))
        kept = Path("build", "kernels", built.name)
        built.parent.mkdir(parents=True, exist_ok=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        if newer_group([*ext.sources, *ext.depends], str(kept)):
            super().build_extension(ext)
            shutil.copy(built, kept)
        else:
            shutil.copy(kept, built)


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildKernels},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
