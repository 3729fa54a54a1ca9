"""`barnabas-python`: the Python for Spark's processes (PYSPARK_PYTHON), which start faster with it.

Spark puts the archives of its own installation first on the PYTHONPATH of every Python process. Python stores
no bytecode for modules in archives, so that each process compiles PySpark again. If the same version is
installed as a package, the archives are left out here. What users ship with --py-files stays.

This module is imported before the archives are left out, so it imports little."""

import os
import sys
from pathlib import Path
from zipimport import ZipImportError, zipimporter

ARCHIVE = "pyspark.zip"
VERSION = "pyspark/version.py"


def without_archives(entries: list[str]) -> list[str]:
    """The path without Spark's own archives, if the packages beside them are the same."""
    archives = [entry for entry in entries if Path(entry).name == ARCHIVE]
    if not archives or not all(_is_installed(Path(archive), entries) for archive in archives):
        return entries
    return [entry for entry in entries if not _is_of_spark(Path(entry))]


def _is_of_spark(entry: Path) -> bool:
    return (
        entry.name == ARCHIVE
        or (entry.name.startswith("py4j-") and entry.suffix == ".zip")
        or (entry.name.startswith("spark-core_") and entry.suffix == ".jar")
    )


def _is_installed(archive: Path, entries: list[str]) -> bool:
    """Whether the first PySpark that is not in an archive has the version of the archive."""
    for entry in map(Path, entries):
        version = entry / VERSION
        if version.is_file() and (entry / "py4j").is_dir():
            # The archive is inside the package, or has the same version.
            return version.parent in archive.parents or version.read_bytes() == _version_in(archive)
    return False


def _version_in(archive: Path) -> bytes | None:
    try:
        return zipimporter(str(archive)).get_data(VERSION)
    except (OSError, ZipImportError):
        return None


def main() -> None:
    kept = without_archives(sys.path)
    left_out = set(sys.path) - set(kept)
    sys.path[:] = kept
    for entry in left_out:
        # Spark lets every process forget which files there are, and Python would read the archives again.
        sys.path_importer_cache.pop(entry, None)
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(entry for entry in given if entry not in left_out)
    arguments = sys.argv[1:]
    if len(arguments) < 2 or arguments[0] != "-m":
        os.execv(sys.executable, [sys.executable, *arguments])
    import runpy

    if not sys.flags.safe_path:
        # As `python -m` does it: the first entry is the current directory, and not that of this script.
        sys.path[0] = str(Path.cwd())
    sys.argv = arguments[1:]
    runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
