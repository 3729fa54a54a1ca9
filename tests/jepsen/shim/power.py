"""What the disk holds after a power failure: only what was synced."""

import os
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tests.jepsen.shim.control import Shim

Change: TypeAlias = list[str]


@dataclass
class PowerLoss:
    """What was lost: bytes at the end of files, and changes of directories that were taken back."""

    bytes_lost: dict[Path, int] = field(default_factory=dict)
    undone: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        files = ", ".join(f"{count} bytes of {path.name}" for path, count in self.bytes_lost.items())
        return f"lost {files or 'no bytes'}; undone: {', '.join(self.undone) or 'nothing'}"


def lose_power(shim: Shim, data_dir: Path, chance: random.Random | None = None) -> PowerLoss:
    """Change the files below `data_dir`, whose process was killed, to what a power failure may leave. Call
    `shim.track_syncs(data_dir)` before the process starts.

    Renames and removals whose directory was not synced afterwards are undone, and each file is cut to its
    size at its last sync; a file that was never synced is empty. With `chance`, some of it may be on disk all
    the same: the first of the changes of directories, and more of each file. Bytes that were overwritten in
    place after a sync keep their new value."""
    loss = PowerLoss()
    durable, pending = _read_journal(shim.journal)
    kept = 0 if chance is None else chance.randint(0, len(pending))
    for change in reversed(pending[kept:]):
        if _undo(change):
            loss.undone.append(f"{change[0]} of {Path(change[2]).name}")
    for path in sorted(data_dir.resolve().rglob("*")):
        if path.is_file() and not path.is_symlink():
            _cut(path, durable, chance, loss)
    shim.journal.write_bytes(b"")
    shutil.rmtree(shim.graveyard)
    shim.graveyard.mkdir()
    return loss


def _cut(path: Path, durable: dict[int, int], chance: random.Random | None, loss: PowerLoss) -> None:
    state = path.stat()
    # A file of which nothing is known was there before.
    size = min(state.st_size, durable.get(state.st_ino, state.st_size))
    if chance is not None:
        size = chance.randint(size, state.st_size)
    if size < state.st_size:
        loss.bytes_lost[path] = state.st_size - size
        os.truncate(path, size)


def _read_journal(journal: Path) -> tuple[dict[int, int], list[Change]]:
    """How many bytes of each file, by inode, were synced; and the changes of directories that were not."""
    durable: dict[int, int] = {}
    pending: list[Change] = []
    lines = journal.read_text().splitlines() if journal.exists() else []
    for kind, inode, *rest in (line.split("\t") for line in lines):
        if kind == "create":
            durable[int(inode)] = 0
        elif kind == "sync":
            durable[int(inode)] = int(rest[0])
        elif kind == "truncate" and int(inode) in durable:
            durable[int(inode)] = min(durable[int(inode)], int(rest[0]))
        elif kind == "directory":
            pending = [change for change in pending if change[1] != inode]
        elif kind in ("rename", "remove"):
            pending.append([kind, inode, *rest])
    return durable, pending


def _undo(change: Change) -> bool:
    """False if that is not possible: then the directory itself was removed, and that is durable."""
    grave = change[-1]
    path = Path(change[3] if change[0] == "rename" else change[2])
    if not path.parent.exists():
        return False
    if change[0] == "rename":
        source = Path(change[2])
        if not source.parent.exists() or not path.exists():
            return False
        path.rename(source)
    elif not grave:
        path.mkdir()
    if grave:
        # This replaces what has taken its name since then, which was not durable either.
        Path(grave).rename(path)
    return True
