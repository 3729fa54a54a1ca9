"""Which leader epoch wrote which offsets: the cache behind OffsetForLeaderEpoch and its checkpoint file.

Invariant: epochs and start offsets both rise strictly. An assignment is on disk before a flush counts the
first batch of the epoch as safe. Before that it may be lost: recovery reads what was not flushed and finds
the epochs in the batches, and an epoch without batches is assigned again. Truncations are written at once,
but losing one is harmless, because loading truncates again."""

import logging
import threading
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import NamedTuple

from barnabas.log import names
from barnabas.log.checkpoints import checkpoint_bytes, read_checkpoint
from barnabas.log.disk import TEMPORARY, Disk, write_durably

logger = logging.getLogger(__name__)

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1
RETIRED = 2**63


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class EpochFile:
    """The checkpoint file. A flush may write it in a thread; content older than the file's is not written."""

    __slots__ = ("_disk", "_lock", "path", "version")

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._lock = threading.Lock()
        self.path = path
        self.version = 0

    def write(self, version: int, content: bytes) -> None:
        """Replace the file. The caller syncs the directory."""
        with self._lock:
            if version > self.version:
                temporary = self.path.with_name(self.path.name + TEMPORARY)
                write_durably(self._disk, temporary, content)
                self._disk.rename(temporary, self.path)
                self.version = version

    def retire(self) -> None:
        """Wait for a write in progress, then refuse all others: another log may use the directory's name."""
        with self._lock:
            self.version = RETIRED


class EpochSave(NamedTuple):
    """A copy of the epochs at one version; `run` writes it to disk, in any thread."""

    file: EpochFile
    version: int
    content: bytes

    def run(self) -> None:
        self.file.write(self.version, self.content)


class LeaderEpochs:
    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk = disk
        self._file = EpochFile(disk, directory / names.LEADER_EPOCHS)
        self._epochs: list[int] = []
        self._starts: list[int] = []
        # Rises with every change. EpochFile.version is the version that was written last.
        self._version = 0
        # Whether the file could be read; if not, the epochs have to be found in the batches of the log.
        self.loaded = self._load()

    @property
    def latest(self) -> int:
        """The newest known epoch, or -1."""
        return self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    @property
    def entries(self) -> list[EpochEntry]:
        return [EpochEntry(epoch, start) for epoch, start in zip(self._epochs, self._starts, strict=True)]

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` begins at `start_offset`. Entries that contradict this were never committed and
        are removed.

        It is not on disk before the next save()."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch} at offset {start_offset} is not a valid entry")
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]:
            return False
        keep = min(bisect_left(self._epochs, epoch), bisect_left(self._starts, start_offset))
        del self._epochs[keep:], self._starts[keep:]
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self._version += 1
        return True

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or after `end_offset`."""
        keep = bisect_left(self._starts, end_offset)
        if keep < len(self._starts):
            del self._epochs[keep:], self._starts[keep:]
            self.save()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended before `start_offset`; the one it lies in now begins there."""
        before = bisect_right(self._starts, start_offset)
        if before and (before > 1 or self._starts[0] != start_offset):
            del self._epochs[: before - 1], self._starts[: before - 1]
            self._starts[0] = start_offset
            self.save()

    def clear(self) -> None:
        self.forget()
        self.save()

    def forget(self) -> None:
        """Remove all epochs from memory; the file is not changed."""
        self._epochs.clear()
        self._starts.clear()

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote `offset`, or -1 if that is before the first known epoch."""
        slot = bisect_right(self._starts, offset)
        return self._epochs[slot - 1] if slot else UNDEFINED_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEntry:
        """The largest known epoch <= `epoch` and where it ends; (-1, -1) if that is unknown.

        An epoch older than all known ones ends where the first known one begins: its records are deleted, and
        a client must go on at the start of this log."""
        if epoch == UNDEFINED_EPOCH:
            return EpochEntry(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self.latest:
            return EpochEntry(epoch, log_end_offset)
        above = bisect_right(self._epochs, epoch)
        if above == len(self._epochs):
            return EpochEntry(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        floor = self._epochs[above - 1] if above else epoch
        return EpochEntry(floor, self._starts[above])

    def save(self) -> None:
        self._version += 1
        self._save().run()

    def retire(self) -> None:
        """The log is deleted: a flush in progress must not write to the directory of a new log with the same
        name."""
        self._file.retire()

    def unsaved(self) -> EpochSave | None:
        """The save that is needed to bring the file up to date, or None."""
        return self._save() if self._version > self._file.version else None

    def _save(self) -> EpochSave:
        content = checkpoint_bytes(f"{epoch} {start}" for epoch, start in self.entries)
        return EpochSave(self._file, self._version, content)

    def _load(self) -> bool:
        entries = read_checkpoint(self._disk, self._file.path, fields=2)
        if entries is None:
            return False
        try:
            for epoch, start in entries:
                self.assign(int(epoch), int(start))
        except ValueError as problem:
            logger.error("checkpoint %s is damaged (%s); it is rebuilt", self._file.path, problem)
            self._epochs.clear()
            self._starts.clear()
            return False
        finally:
            self._version = 0
        return True
