"""A flush in three steps, so that the slow one can run in a thread: plan (owner), run (anywhere), finish
(owner).

Only `run` blocks; it touches file descriptors that the task keeps open, and no state of the log."""

from dataclasses import dataclass
from pathlib import Path

from barnabas.log.disk import Disk, FileHandle


@dataclass(frozen=True, slots=True)
class FlushTask:
    """Once run, all offsets below `upto` are on stable storage."""

    disk: Disk
    directory: Path
    upto: int
    files: list[FileHandle]

    def run(self) -> None:
        for file in self.files:
            self.disk.fsync(file.fd)
        self.disk.fsync_dir(self.directory)
