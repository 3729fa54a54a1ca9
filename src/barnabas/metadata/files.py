"""The file operations of the embedded store. A crash can happen before or after each of them.

Tests use a file system that stops at a chosen operation, writes only some of the bytes, or loses what was not
synced. The methods block, and are called from a worker thread."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

# Broker configs may hold passwords.
_OWNER_ONLY = 0o600


class Files(Protocol):
    def make_directory(self, path: Path) -> None: ...

    def exists(self, path: Path) -> bool: ...

    def read(self, path: Path) -> bytes: ...

    def create(self, path: Path) -> int:
        """A new empty file, replacing any other, open for writing."""
        ...

    def open(self, path: Path) -> int: ...

    def write(self, descriptor: int, data: bytes, position: int) -> None: ...

    def truncate(self, descriptor: int, size: int) -> None: ...

    def sync(self, descriptor: int) -> None: ...

    def sync_directory(self, path: Path) -> None: ...

    def rename(self, source: Path, target: Path) -> None: ...

    def remove(self, path: Path) -> None:
        """Remove the file if it exists."""
        ...

    def close(self, descriptor: int) -> None: ...

    def lock(self, path: Path) -> int | None:
        """An exclusive lock that ends with the process, or None while another process holds it."""
        ...


class RealFiles:
    def make_directory(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def exists(self, path: Path) -> bool:
        return path.exists()

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def create(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _OWNER_ONLY)

    def open(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def write(self, descriptor: int, data: bytes, position: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(descriptor, view, position)
            view = view[written:]
            position += written

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def sync_directory(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        source.rename(target)

    def remove(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            path.unlink()

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def lock(self, path: Path) -> int | None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor
