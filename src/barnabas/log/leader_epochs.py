"""Which leader epoch wrote which offsets: the cache behind OffsetForLeaderEpoch and its checkpoint file.

Holds: epochs and start offsets both rise strictly. An assignment is on disk before the first batch of the
epoch is written; truncations are written too, but losing one is harmless, because loading truncates again."""

import logging
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import NamedTuple

from barnabas.log import names
from barnabas.log.checkpoints import read_checkpoint, write_checkpoint
from barnabas.log.disk import Disk

logger = logging.getLogger(__name__)

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk = disk
        self._path = directory / names.LEADER_EPOCHS
        self._epochs: list[int] = []
        self._starts: list[int] = []
        # Whether the file was there and sound; without it the log has to be read to know its epochs.
        self.loaded = self._load()

    @property
    def latest(self) -> int:
        """The newest epoch known, -1 when none is."""
        return self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    @property
    def entries(self) -> list[EpochEntry]:
        return [EpochEntry(epoch, start) for epoch, start in zip(self._epochs, self._starts, strict=True)]

    def moved_to(self, directory: Path) -> None:
        self._path = directory / names.LEADER_EPOCHS

    def assign(self, epoch: int, start_offset: int, *, save: bool = True) -> bool:
        """Note that `epoch` begins at `start_offset`; an entry this contradicts was never committed and
        goes."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch} at offset {start_offset} is no valid entry")
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]:
            return False
        keep = min(bisect_left(self._epochs, epoch), bisect_left(self._starts, start_offset))
        del self._epochs[keep:], self._starts[keep:]
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        if save:
            self.save()
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
        self._epochs.clear()
        self._starts.clear()
        self.save()

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
        write_checkpoint(self._disk, self._path, (f"{epoch} {start}" for epoch, start in self.entries))

    def _load(self) -> bool:
        entries = read_checkpoint(self._disk, self._path, fields=2)
        if entries is None:
            return False
        try:
            for epoch, start in entries:
                self.assign(int(epoch), int(start), save=False)
        except ValueError as problem:
            logger.error("checkpoint %s is damaged (%s); it is rebuilt", self._path, problem)
            self._epochs.clear()
            self._starts.clear()
            return False
        return True
