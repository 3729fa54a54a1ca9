"""A flush in three steps, so that the slow one can run in a thread: plan (owner), run (anywhere), finish
(owner).

Only `run` blocks; it touches files and no state of the log."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from barnabas.log.disk import Disk, FileHandle
from barnabas.log.leader_epochs import EpochSave

# What several threads ask of a disk at once, it does in few turns.
SYNCING_THREADS = 16


class NotBegunError(OSError):
    """A flush failed before it synced anything: when what was wrong has passed, it can be tried again."""


@dataclass(frozen=True, slots=True)
class FlushTask:
    """Once run, all offsets below `upto` are on stable storage."""

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
        """Run; what failed."""
        try:
            self.run()
        except OSError as problem:
            return problem
        return None


def run_together(tasks: Sequence[FlushTask]) -> list[OSError | None]:
    """Run many flushes at once and wait for them; what failed, for each of them."""
    if len(tasks) < 2:
        return [task.problem() for task in tasks]
    with ThreadPoolExecutor(min(SYNCING_THREADS, len(tasks)), "flush") as threads:
        return list(threads.map(FlushTask.problem, tasks))
