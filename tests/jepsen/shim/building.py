"""Compiles the C library, once in a test session."""

import atexit
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent


@cache
def library() -> Path:
    """The compiled library. Its directory is removed when this process ends."""
    directory = Path(tempfile.mkdtemp(prefix="barnabas-shim-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    target = directory / "shim.so"
    # -U: the checks of buffer sizes would replace the very functions that the library defines.
    command = ["gcc", "-O2", "-fPIC", "-shared", "-U_FORTIFY_SOURCE", "-o", str(target)]
    command += [str(path) for path in sorted(SOURCES.glob("*.c"))]
    done = subprocess.run([*command, "-ldl"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"cannot compile the library with disk and clock faults:\n{done.stderr}")
    return target
