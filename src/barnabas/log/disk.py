"""The file system as the log uses it: all reads and writes go through a Disk, so that a test can make one
fail.

Methods for data take a file descriptor and are the system calls themselves, because a wrapper would slow down
every append; the others take a Path."""

import errno
import os
import shutil
from pathlib import Path
from typing import Protocol, TypeAlias

from barnabas.log.open_files import OpenFiles

COPY_CHUNK_BYTES = 1 << 20
# Suffix of a file that is written and then renamed to its final name; a crash may leave it behind.
TEMPORARY = ".tmp"

Data: TypeAlias = bytes | bytearray | memoryview


class FileHandle:
    """An open file. It is closed by close(), or when nobody refers to it any more.

    A reader keeps the handle of the segment that it reads, so the segment can be deleted before the reader
    has finished: the kernel keeps an unlinked file until its last descriptor is closed."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def fileno(self) -> int:
        return self.fd

    def close(self) -> None:
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class Readers:
    """How many readers a file has, over all its handles: slices that are not sent or dropped yet.

    A file with readers must not be cut: they were promised its bytes. Only the event loop changes the count.
    Code that reads a file within one turn of the loop, such as a recovery, is not counted; the cleaner opens
    its own files, which are never truncated."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Disk(Protocol):
    """The file system operations that the log needs. Failures are OSError; writes may be short, as in
    POSIX."""

    open_files: OpenFiles

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> FileHandle: ...
    def pwrite(self, fd: int, data: Data, position: int, /) -> int: ...
    def pread(self, fd: int, size: int, position: int, /) -> bytes: ...
    def fsync(self, fd: int, /) -> None: ...
    def truncate(self, fd: int, size: int, /) -> None: ...
    def allocate(self, fd: int, size: int, /) -> None: ...
    def size(self, fd: int, /) -> int: ...
    def size_of(self, path: Path) -> int: ...
    def fsync_dir(self, path: Path) -> None: ...
    def rename(self, source: Path, target: Path) -> None: ...
    def unlink(self, path: Path) -> None: ...
    def mkdir(self, path: Path) -> None: ...
    def listdir(self, path: Path) -> list[str]: ...
    def rmtree(self, path: Path) -> None: ...


class RealDisk:
    """The files of the operating system. The methods for data are the system calls themselves."""

    pwrite = staticmethod(os.pwrite)
    pread = staticmethod(os.pread)
    fsync = staticmethod(os.fsync)
    truncate = staticmethod(os.ftruncate)

    def __init__(self) -> None:
        self.open_files = OpenFiles()

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> FileHandle:
        flags = os.O_CLOEXEC | (os.O_RDWR if write else os.O_RDONLY) | (os.O_CREAT if create else 0)
        return FileHandle(os.open(path, flags, 0o644))

    def allocate(self, fd: int, size: int, /) -> None:
        os.posix_fallocate(fd, 0, size)

    def size(self, fd: int, /) -> int:
        return os.fstat(fd).st_size

    def size_of(self, path: Path) -> int:
        return path.stat().st_size

    def fsync_dir(self, path: Path) -> None:
        handle = FileHandle(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        os.fsync(handle.fd)
        handle.close()

    def rename(self, source: Path, target: Path) -> None:
        source.rename(target)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def mkdir(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def listdir(self, path: Path) -> list[str]:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries)

    def rmtree(self, path: Path) -> None:
        shutil.rmtree(path)


def write_fully(disk: Disk, fd: int, data: Data, position: int) -> None:
    """Write all of `data`, going on after a short write. A write of 0 bytes means that the disk is full."""
    view = memoryview(data).cast("B")
    while view:
        written = disk.pwrite(fd, view, position)
        if written <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[written:]
        position += written


def read_file(disk: Disk, path: Path) -> bytes | None:
    """The content of a small file, or None if there is no file."""
    try:
        handle = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        return disk.pread(handle.fd, disk.size(handle.fd), 0)
    finally:
        handle.close()


def put_file(disk: Disk, path: Path, data: bytes) -> None:
    """Like replace_file, but only safe if the process is killed: after a power failure the file may be
    missing or empty."""
    temporary = path.with_name(path.name + TEMPORARY)
    handle = disk.open(temporary, write=True, create=True)
    try:
        disk.truncate(handle.fd, 0)
        write_fully(disk, handle.fd, data, 0)
    finally:
        handle.close()
    disk.rename(temporary, path)


def replace_file(disk: Disk, path: Path, data: bytes) -> None:
    """Replace a small file so that after a crash it has the old content or the new, never a mixture."""
    temporary = path.with_name(path.name + TEMPORARY)
    write_durably(disk, temporary, data)
    disk.rename(temporary, path)
    disk.fsync_dir(path.parent)


def write_durably(disk: Disk, path: Path, data: bytes) -> None:
    """Write a small file and sync it to stable storage; a crash may leave any part of it."""
    handle = disk.open(path, write=True, create=True)
    try:
        disk.truncate(handle.fd, 0)
        write_fully(disk, handle.fd, data, 0)
        disk.fsync(handle.fd)
    finally:
        handle.close()


def copy_prefix(disk: Disk, source: FileHandle, target: FileHandle, size: int) -> None:
    """Copy the first `size` bytes of one open file into another."""
    position = 0
    while position < size:
        chunk = disk.pread(source.fd, min(COPY_CHUNK_BYTES, size - position), position)
        if not chunk:
            raise OSError(errno.EIO, "the file ended while it was being copied")
        write_fully(disk, target.fd, chunk, position)
        position += len(chunk)


def replace_by_prefix(disk: Disk, file: FileHandle, path: Path, size: int) -> FileHandle:
    """Replace `path` by a copy of the first `size` bytes of `file`, which itself is not changed; returns the
    copy."""
    temporary = path.with_name(path.name + ".cleaned")
    target = disk.open(temporary, write=True, create=True)
    copy_prefix(disk, file, target, size)
    disk.truncate(target.fd, size)
    disk.fsync(target.fd)
    disk.rename(temporary, path)
    disk.fsync_dir(path.parent)
    return target
