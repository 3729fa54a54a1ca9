"""A Python for the workers of a cluster that has the libraries of this one, but not our package."""

import os
import sys
import sysconfig
from pathlib import Path

# The daemons of workers have this variable; the driver, and what Spark starts beside it, do not.
ON_WORKERS = "BARNABAS_TEST_BARE"


def bare_python(folder: Path, *missing: str) -> Path:
    """A program that runs a Python without our package and these libraries on workers, and this one
    elsewhere."""
    environment = folder / "bare"
    libraries = (
        environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    )
    libraries.mkdir(parents=True)
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "barnabas" not in path.name and path.name not in missing:
            (libraries / path.name).symlink_to(path)
    (environment / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    (environment / "bin").mkdir()
    (environment / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    program = folder / "python"
    program.write_text(
        f'#!/bin/sh\n[ -n "${ON_WORKERS}" ] && exec "{environment}/bin/python" "$@"\n'
        f'exec "{sys.executable}" "$@"\n'
    )
    program.chmod(0o755)
    assert os.access(program, os.X_OK)
    return program
