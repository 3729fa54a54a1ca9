"""Files and directories to be deleted: they are renamed at once and removed after file.delete.delay.ms.

The new name makes a deletion safe from crashes: the next start removes all files with such names."""

import logging
from pathlib import Path
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.log import names
from barnabas.log.disk import Disk

logger = logging.getLogger(__name__)


class Deletion(NamedTuple):
    due: float
    path: Path
    is_directory: bool


class Trash:
    """Files are grouped by directory, so that a directory with thousands of them is forgotten at once."""

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock
        self._files: dict[Path, list[Deletion]] = {}
        self._directories: list[Deletion] = []

    def __len__(self) -> int:
        return len(self._directories) + sum(map(len, self._files.values()))

    def add_file(self, path: Path, delay_ms: int) -> None:
        """Rename `path` now and remove it later. It is not an error if the file does not exist."""
        target = path.with_name(path.name + names.DELETED)
        try:
            self._disk.rename(path, target)
        except FileNotFoundError:
            return
        deletion = Deletion(self._clock.monotonic() + delay_ms / 1000, target, False)
        self._files.setdefault(target.parent, []).append(deletion)

    def add_leftover(self, path: Path) -> None:
        """Remove a harmless file later; it keeps its name until then."""
        self._files.setdefault(path.parent, []).append(Deletion(self._clock.monotonic(), path, False))

    def add_directory(self, path: Path, delay_ms: int) -> None:
        """Remove later a directory that the caller has renamed."""
        self._directories.append(Deletion(self._clock.monotonic() + delay_ms / 1000, path, True))

    def empty(self, *, all_now: bool = False) -> int:
        """Remove everything that is due; returns how many files and directories."""
        due = self.take_due(all_now=all_now)
        self.remove(due)
        return len(due)

    def take_due(self, *, all_now: bool = False) -> list[Deletion]:
        """Everything that is due. The caller removes it; the trash has forgotten it."""
        now = self._clock.monotonic()
        everything = [deletion for files in self._files.values() for deletion in files] + self._directories
        due = [deletion for deletion in everything if all_now or deletion.due <= now]
        if due:
            self._keep([deletion for deletion in everything if not all_now and deletion.due > now])
        return due

    def remove(self, due: list[Deletion]) -> None:
        """The slow step; it touches only the files, so it may run in any thread."""
        for deletion in due:
            try:
                if deletion.is_directory:
                    self._disk.rmtree(deletion.path)
                else:
                    self._disk.unlink(deletion.path)
            except FileNotFoundError:
                continue
            except OSError as problem:
                # The next start tries again: it looks for such names.
                logger.warning("%s could not be removed: %s", deletion.path, problem)

    def _keep(self, remaining: list[Deletion]) -> None:
        self._files, self._directories = {}, []
        for deletion in remaining:
            if deletion.is_directory:
                self._directories.append(deletion)
            else:
                self._files.setdefault(deletion.path.parent, []).append(deletion)

    def forget_below(self, directory: Path) -> None:
        """The whole directory will be removed: forget its files."""
        self._files.pop(directory, None)
