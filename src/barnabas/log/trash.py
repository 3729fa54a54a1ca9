"""Files and directories on their way out: renamed at once, removed after file.delete.delay.ms.

The rename is what makes a deletion crash-safe: at the next start leftovers with these names are removed."""

import logging
from pathlib import Path
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.log import names
from barnabas.log.disk import Disk

logger = logging.getLogger(__name__)


class Doomed(NamedTuple):
    due: float
    path: Path
    is_directory: bool


class Trash:
    """Files are kept by the directory they are in, so that a directory of thousands is forgotten at once."""

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock
        self._files: dict[Path, list[Doomed]] = {}
        self._directories: list[Doomed] = []

    def __len__(self) -> int:
        return len(self._directories) + sum(map(len, self._files.values()))

    def add_file(self, path: Path, delay_ms: int) -> None:
        """Rename `path` out of the way now and remove it later; a file that is gone already is no error."""
        target = path.with_name(path.name + names.DELETED)
        try:
            self._disk.rename(path, target)
        except FileNotFoundError:
            return
        doomed = Doomed(self._clock.monotonic() + delay_ms / 1000, target, False)
        self._files.setdefault(target.parent, []).append(doomed)

    def add_leftover(self, path: Path) -> None:
        """Remove a file that does no harm where it is, when there is time."""
        self._files.setdefault(path.parent, []).append(Doomed(self._clock.monotonic(), path, False))

    def add_directory(self, path: Path, delay_ms: int) -> None:
        """Remove a directory, renamed by the caller, later."""
        self._directories.append(Doomed(self._clock.monotonic() + delay_ms / 1000, path, True))

    def empty(self, *, all_now: bool = False) -> int:
        """Remove what is due; how many were removed."""
        due = self.take_due(all_now=all_now)
        self.remove(due)
        return len(due)

    def take_due(self, *, all_now: bool = False) -> list[Doomed]:
        """What is to be removed now; from here on it is the caller's to remove."""
        now = self._clock.monotonic()
        everything = [doomed for files in self._files.values() for doomed in files] + self._directories
        due = [doomed for doomed in everything if all_now or doomed.due <= now]
        if due:
            self._keep([doomed for doomed in everything if not all_now and doomed.due > now])
        return due

    def remove(self, due: list[Doomed]) -> None:
        """The slow part; touches nothing but the files, so any thread may do it."""
        for doomed in due:
            try:
                if doomed.is_directory:
                    self._disk.rmtree(doomed.path)
                else:
                    self._disk.unlink(doomed.path)
            except FileNotFoundError:
                continue
            except OSError as problem:
                # It is tried again at the next start, where leftovers are looked for.
                logger.warning("%s could not be removed: %s", doomed.path, problem)

    def _keep(self, remaining: list[Doomed]) -> None:
        self._files, self._directories = {}, []
        for doomed in remaining:
            if doomed.is_directory:
                self._directories.append(doomed)
            else:
                self._files.setdefault(doomed.path.parent, []).append(doomed)

    def forget_below(self, directory: Path) -> None:
        """A directory went as a whole: its files need no removal of their own."""
        self._files.pop(directory, None)
