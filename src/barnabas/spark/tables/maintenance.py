"""Parts of the maintenance of tables that all formats share: figures, ages, and unused files.

Lists and removes files in the directory of a table."""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from pyarrow import fs

from barnabas.spark.tables.files import filesystem_of

DAY_SECONDS = 86_400


class Maintained(NamedTuple):
    """What was done. Files are those that readers see; bytes are all bytes of the table on the disk."""

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    snapshots_removed: int
    files_swept: int


class Figures(NamedTuple):
    """The figures of a table at one time."""

    files: int
    bytes: int
    snapshots: int


def maintained(measure: Callable[[], Figures], work: Callable[[], int]) -> Maintained:
    """Do the work, which returns how many files it removed, and report what has changed."""
    before = measure()
    swept = work()
    after = measure()
    return Maintained(
        before.files, after.files, before.bytes, after.bytes, before.snapshots - after.snapshots, swept
    )


def disk_bytes(path: str) -> int:
    """The bytes of all files below the path of a table."""
    filesystem, root = filesystem_of(path)
    return sum(info.size or 0 for info in filesystem.get_file_info(fs.FileSelector(root, recursive=True)))


def sweep(root: Path, pattern: str, named: Iterable[str], keep_days: float) -> int:
    """Remove files below a directory that are not named and older than `keep_days`; returns how many.

    Real paths are compared, because a table may have been written through a link."""
    limit = time.time() - keep_days * DAY_SECONDS
    kept = {os.path.realpath(path) for path in named}
    old = [
        path
        for path in root.rglob(pattern)
        if os.path.realpath(path) not in kept and path.is_file() and _is_older(path, limit)
    ]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _is_older(path: Path, limit: float) -> bool:
    try:
        return path.stat().st_mtime <= limit
    except FileNotFoundError:
        # A commit has moved the file to its final place meanwhile.
        return False
