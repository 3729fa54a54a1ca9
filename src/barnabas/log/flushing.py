"""A flush has three steps, so that the slow one can run in a thread: plan (owner), run (any thread), finish
(owner).

Only `run` blocks. It touches files and no state of the log."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from barnabas.log.disk import Disk, FileHandle
from barnabas.log.leader_epochs import EpochSave

# A disk merges syncs that several threads request at the same time.
SYNCING_THREADS = 16


class NotBegunError(OSError):
    """A flush failed before it synced anything, so it can be tried again when the cause is gone."""


@dataclass(frozen=True, slots=True)
class FlushTask:
    """After run(), all offsets below `upto` are on stable storage."""

    disk: Disk
    directory: Path
    upto: int
    files: list[FileHandle]
    epochs: EpochSave | None = None

    def run(self) -> None:
        if self.epochs is not None:
            try:
                self.epochs.run()
            except OSError as problem:
                raise NotBegunError(problem.errno, problem.strerror) from problem
        for file in self.files:
            self.disk.fsync(file.fd)
        self.disk.fsync_dir(self.directory)

    def problem(self) -> OSError | None:
        """Run, and return the error instead of raising it."""
        try:
            self.run()
        except OSError as problem:
            return problem
        return None


def run_together(tasks: Sequence[FlushTask]) -> list[OSError | None]:
    """Run many flushes at once and wait for them; returns the error of each, or None."""
    if len(tasks) < 2:
        return [task.problem() for task in tasks]
    with ThreadPoolExecutor(min(SYNCING_THREADS, len(tasks)), "flush") as threads:
        return list(threads.map(FlushTask.problem, tasks))
