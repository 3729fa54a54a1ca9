"""Checkpoints are written in three steps, so that the slow one can run in a thread: plan (owner), write (any
thread), finish (owner). The new files are written beside the old ones. Only the owner renames them, because
only the owner knows whether they are still correct. Each task has files of its own: the owner may write
checkpoints itself while a thread writes others."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from barnabas.ids import TopicPartition
from barnabas.log import names
from barnabas.log.checkpoints import offsets_bytes
from barnabas.log.directories import LogDirectory
from barnabas.log.disk import Disk, write_durably


class CheckpointFile(NamedTuple):
    directory: LogDirectory
    name: str
    offsets: dict[TopicPartition, int]
    number: int

    @property
    def path(self) -> Path:
        return self.directory.path / self.name

    @property
    def pending(self) -> Path:
        return self.directory.path / names.pending_checkpoint(self.name, self.number)


@dataclass(slots=True)
class CheckpointTask:
    """`number` counts the tasks of the manager. `deletions` is how many logs it had deleted when the task was
    planned. `is_complete`: all checkpoints are written, not only the high watermarks."""

    disk: Disk
    number: int
    deletions: int
    files: list[CheckpointFile]
    is_complete: bool = True
    problems: list[tuple[LogDirectory, OSError]] = field(default_factory=list)

    def write(self) -> None:
        """The slow step; it touches only its own files."""
        for file in self.files:
            try:
                write_durably(self.disk, file.pending, offsets_bytes(file.offsets))
            except OSError as problem:
                self.problems.append((file.directory, problem))

    def finish(self, *, discard: bool) -> list[tuple[LogDirectory, OSError]]:
        """Rename the files into place, or remove them; returns what failed, here or while writing."""
        failed = {directory.path for directory, _ in self.problems}
        for file in self.files:
            if file.directory.path in failed:
                continue
            try:
                if discard:
                    self.disk.unlink(file.pending)
                else:
                    self.disk.rename(file.pending, file.path)
            except OSError as problem:
                self.problems.append((file.directory, problem))
        return self.problems
