"""Damage to the files of a partition whose broker does not run."""

import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# The length of a batch is at this place, and counts what comes after it.
LENGTH_AT, LENGTH_END = 8, 12
# The first byte of a batch's records, after its header.
IN_THE_RECORDS = 70
SIDE_FILES = ("*.index", "*.timeindex", "*.txnindex", "*.snapshot", "leader-epoch-checkpoint")
# In the log directory, for all its partitions.
HIGH_WATERMARKS = "../replication-offset-checkpoint"


class Damage(Protocol):
    def apply(self, directory: Path) -> None:
        """Damage the files of this partition."""


@dataclass(frozen=True)
class TornTail:
    """Only the first `keep_bytes` of the last batch are on disk."""

    keep_bytes: int

    def apply(self, directory: Path) -> None:
        path = _segments(directory)[-1]
        os.truncate(path, batch_positions(path)[-1] + self.keep_bytes)


@dataclass(frozen=True)
class GarbageTail:
    """Bytes after the last batch: zeros, or others if there is a seed."""

    count: int
    seed: int | None = None

    def apply(self, directory: Path) -> None:
        extra = bytes(self.count) if self.seed is None else random.Random(self.seed).randbytes(self.count)
        with _segments(directory)[-1].open("ab") as file:
            file.write(extra)


@dataclass(frozen=True)
class FlippedBit:
    """One bit of a batch in the middle of the first segment; `position` is the place in the batch."""

    position: int = IN_THE_RECORDS
    bit: int = 0

    def apply(self, directory: Path) -> None:
        path = _segments(directory)[0]
        positions = batch_positions(path)
        place = positions[len(positions) // 2] + self.position
        with path.open("r+b") as file:
            file.seek(place)
            (value,) = file.read(1)
            file.seek(place)
            file.write(bytes([value ^ 1 << self.bit]))


@dataclass(frozen=True)
class LostFiles:
    """Files beside the log are missing."""

    patterns: tuple[str, ...] = SIDE_FILES

    def apply(self, directory: Path) -> None:
        for path in _matching(directory, self.patterns):
            path.unlink()


@dataclass(frozen=True)
class GarbledFiles:
    """Files beside the log are full of garbage."""

    patterns: tuple[str, ...] = SIDE_FILES

    def apply(self, directory: Path) -> None:
        for path in _matching(directory, self.patterns):
            path.write_bytes(random.Random(path.name).randbytes(max(8, path.stat().st_size)))


def batch_positions(path: Path) -> list[int]:
    """Where the batches of a segment begin."""
    data = path.read_bytes()
    positions, position = [], 0
    while position + LENGTH_END <= len(data):
        positions.append(position)
        position += LENGTH_END + int.from_bytes(data[position + LENGTH_AT : position + LENGTH_END], "big")
    return positions


def _segments(directory: Path) -> list[Path]:
    """The files with records, the oldest first."""
    return sorted(path for path in directory.glob("*.log") if path.stat().st_size)


def _matching(directory: Path, patterns: tuple[str, ...]) -> list[Path]:
    found = [
        path
        for pattern in patterns
        for path in (directory / pattern).parent.resolve().glob(Path(pattern).name)
    ]
    if not found:
        raise RuntimeError(f"there are no files {', '.join(patterns)} in {directory}")
    return found
