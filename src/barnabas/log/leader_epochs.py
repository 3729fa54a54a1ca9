"""Which leader epoch wrote which offsets: the cache behind OffsetForLeaderEpoch and its checkpoint file.

Holds: epochs and start offsets both rise strictly. An assignment is on disk before a flush counts the first
batch of the epoch as safe: a start reads what was not flushed anyway and finds the epochs in the batches, and
one of which nothing was written is assigned again. Truncations are written at once, but losing one is
harmless, because loading truncates again."""

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
    """The checkpoint file. A flush may write it in a thread; what is older than its content is left out."""

    __slots__ = ("_disk", "_lock", "path", "version")

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._lock = threading.Lock()
        self.path = path
        self.version = 0

    def write(self, version: int, content: bytes) -> None:
        """Replace the file. That the directory knows of it is for the caller to make sure."""
        with self._lock:
            if version > self.version:
                temporary = self.path.with_name(self.path.name + TEMPORARY)
                write_durably(self._disk, temporary, content)
                self._disk.rename(temporary, self.path)
                self.version = version

    def retire(self) -> None:
        """Write no more, once a write that is under way has ended: the directory goes to somebody else."""
        with self._lock:
            self.version = RETIRED


class EpochSave(NamedTuple):
    """The epochs as they were once; `run` puts them on disk, in any thread."""

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
        # Rises with every change; the file has that of its content.
        self._version = 0
        # Whether the file was there and sound; without it the log has to be read to know its epochs.
        self.loaded = self._load()

    @property
    def latest(self) -> int:
        """The newest epoch known, -1 when none is."""
        return self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    @property
    def entries(self) -> list[EpochEntry]:
        return [EpochEntry(epoch, start) for epoch, start in zip(self._epochs, self._starts, strict=True)]

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` begins at `start_offset`; an entry this contradicts was never committed and goes.

        It is not on disk before the next save()."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch} at offset {start_offset} is no valid entry")
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
        """Know of no epoch, in memory only."""
        self._epochs.clear()
        self._starts.clear()

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote `offset`, -1 when that is before the first epoch known."""
        slot = bisect_right(self._starts, offset)
        return self._epochs[slot - 1] if slot else UNDEFINED_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEntry:
        """The largest known epoch <= `epoch` and where it ends; (-1, -1) when that cannot be said.

        An epoch older than all known ones ends where the first known one begins: what it wrote is gone, and
        its asker must go on from the start of this log."""
        if epoch == UNDEFINED_EPOCH:
            return EpochEntry(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self.latest:
            return EpochEntry(epoch, log_end_offset)
        above = bisect_right(self._epochs, epoch)
        if above == len(self._epochs):
            return EpochEntry(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        found = self._epochs[above - 1] if above else epoch
        return EpochEntry(found, self._starts[above])

    def save(self) -> None:
        self._version += 1
        self._save().run()

    def retire(self) -> None:
        """The log is deleted: a flush that is still under way must not write into another's directory."""
        self._file.retire()

    def unsaved(self) -> EpochSave | None:
        """What has to be written so that the file is as the epochs are now."""
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
