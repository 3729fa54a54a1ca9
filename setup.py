"""Builds the kernels with Cython; everything else is in pyproject.toml.

docs/decisions/0014-building-the-kernels.md says what each choice costs."""

import hashlib
import os
import shlex
import shutil
import sysconfig
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import PlatformError

FOLDER = Path("src/barnabas/kernels")
# Cython's code for memoryviews. It is as large as a large kernel, so the kernels share one copy.
VIEWS = "barnabas.kernels.views"


# These mostly call Python: they are not faster with -O3, but take longer to build.
LEVELS = {"views": "-O1", "codec": "-O2", "codec_write": "-O2", "log_end": "-O2", "plans": "-O2"}


def extension(name: str, source: str) -> Extension:
    # With -O2 the loops over bytes are up to 1.5 times slower. Debug information would be 90 % of the files.
    level = LEVELS.get(name.rpartition(".")[2], "-O3")
    return Extension(name, [source], extra_compile_args=[level, "-g0"])


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


def fingerprint(name: str) -> str:
    """What a kernel is built from: its source, what other kernels declare, the flags, and Cython.

    Times of files would not do: pip installs a new Cython for each installation."""
    chosen = (Cython.__version__, *(os.environ.get(variable, "") for variable in ("CC", "CFLAGS")))
    digest = hashlib.sha256(repr(chosen).encode())
    source = FOLDER / f"{name.rpartition('.')[2]}.py"
    for path in (Path("setup.py"), *sorted(FOLDER.glob("*.pxd")), source):
        # The shared module has no source of ours.
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()


class BuildKernels(build_ext):
    """Builds kernels, or takes them from an earlier build if nothing has changed since.

    setuptools alone would build all of them again for each editable installation, and for each extra."""

    def finalize_options(self) -> None:
        check_compiler()
        super().finalize_options()

    def run(self) -> None:
        changed = [ext for ext in self.extensions if not self.is_kept(ext)]
        translated = cythonize(
            changed,
            force=True,
            build_dir="build",
            include_path=["src"],
            language_level=3,
            shared_utility_qualified_name=VIEWS,
            # Classes of kernels belong to a process; those that can be pickled say so.
            compiler_directives={"auto_pickle": False, "emit_code_comments": False},
        )
        sources = {ext.name: ext.sources for ext in translated}
        for ext in changed:
            ext.sources = sources[ext.name]
        super().run()

    def kept(self, ext: Extension) -> tuple[Path, Path]:
        """Where a compiled kernel is kept, and the file that says what it was built from."""
        kernel = Path("build", "kernels", Path(self.get_ext_fullpath(ext.name)).name)
        return kernel, kernel.with_suffix(".inputs")

    def is_kept(self, ext: Extension) -> bool:
        kernel, inputs = self.kept(ext)
        return kernel.exists() and inputs.exists() and inputs.read_text() == fingerprint(ext.name)

    def build_extension(self, ext: Extension) -> None:
        built = Path(self.get_ext_fullpath(ext.name))
        built.parent.mkdir(parents=True, exist_ok=True)
        kernel, inputs = self.kept(ext)
        if self.is_kept(ext):
            shutil.copy(kernel, built)
            return
        super().build_extension(ext)
        kernel.parent.mkdir(parents=True, exist_ok=True)
        inputs.unlink(missing_ok=True)
        shutil.copy(built, kernel)
        inputs.write_text(fingerprint(ext.name))


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildKernels},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
