"""A disk that fails on request: full, broken, read-only, with short writes, or losing what was not synced.

Takes the place of `log.disk.RealDisk`, and works on real files."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from barnabas.log.disk import Data, FileHandle, RealDisk


@dataclass(slots=True)
class Fault:
    """Fail `operation` with `code`, after `after` calls that succeed, `times` times (None: always), for files
    below the directory `below`. With `keep`, a write stores that many bytes instead of failing."""

    operation: str
    code: int
    after: int = 0
    times: int | None = None
    keep: int | None = None
    below: Path | None = None

    def applies_to(self, path: Path | None) -> bool:
        if self.times == 0 or (self.below and path and self.below not in (path, *path.parents)):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class FaultyDisk(RealDisk):
    def __init__(self) -> None:
        super().__init__()
        self.faults: list[Fault] = []
        self.calls: dict[str, int] = {}
        self._paths: dict[int, Path] = {}
        # How many bytes of each file, by inode, survive a power failure.
        self._synced: dict[int, int] = {}

    def fail(self, operation: str, code: int = errno.EIO, **limits: int | Path | None) -> Fault:
        """Make calls of `operation` fail from now on; the limits are the fields of Fault."""
        fault = Fault(operation, code, **limits)  # type: ignore[arg-type]
        self.faults.append(fault)
        return fault

    def heal(self) -> None:
        self.faults.clear()

    def lose_power(self, root: Path) -> None:
        """Truncate every file below `root` to what was synced, as a crash of the machine may do."""
        for path in root.rglob("*"):
            if path.is_file():
                state = path.stat()
                os.truncate(path, min(state.st_size, self._synced.get(state.st_ino, 0)))

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> FileHandle:
        self._call("open", path)
        handle = super().open(path, write=write, create=create)
        self._paths[handle.fd] = path
        return handle

    def pwrite(self, fd: int, data: Data, position: int, /) -> int:  # type: ignore[override]
        fault = self._fault("pwrite", self._paths.get(fd))
        if fault is None:
            return os.pwrite(fd, data, position)
        if fault.keep is None:
            raise OSError(fault.code, os.strerror(fault.code))
        return os.pwrite(fd, memoryview(data)[: fault.keep], position)

    def pread(self, fd: int, size: int, position: int, /) -> bytes:
        self._call("pread", self._paths.get(fd))
        return os.pread(fd, size, position)

    def fsync(self, fd: int, /) -> None:  # type: ignore[override]
        self._call("fsync", self._paths.get(fd))
        state = os.fstat(fd)
        self._synced[state.st_ino] = state.st_size

    def truncate(self, fd: int, size: int, /) -> None:
        self._call("truncate", self._paths.get(fd))
        os.ftruncate(fd, size)

    def size_of(self, path: Path) -> int:
        self._call("size_of", path)
        return super().size_of(path)

    def fsync_dir(self, path: Path) -> None:
        self._call("fsync_dir", path)

    def rename(self, source: Path, target: Path) -> None:
        self._call("rename", source)
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self._call("unlink", path)
        super().unlink(path)

    def mkdir(self, path: Path) -> None:
        self._call("mkdir", path)
        super().mkdir(path)

    def listdir(self, path: Path) -> list[str]:
        self._call("listdir", path)
        return super().listdir(path)

    def _call(self, operation: str, path: Path | None) -> None:
        fault = self._fault(operation, path)
        if fault is not None:
            raise OSError(fault.code, os.strerror(fault.code))

    def _fault(self, operation: str, path: Path | None) -> Fault | None:
        self.calls[operation] = self.calls.get(operation, 0) + 1
        for fault in self.faults:
            if fault.operation == operation and fault.applies_to(path):
                return fault
        return None
