"""What a reply is made of: bytes, and ranges of files that are sent as they are."""

import os
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

# Below the first size, pread and one send are faster than sendfile. One reply copies at most the second.
SENDFILE_BYTES_MIN = 64 * 1024
COPIED_BYTES_MAX = 1024 * 1024


class File(Protocol):
    def fileno(self) -> int: ...


class FileRange(Protocol):
    """A range of a file to be sent as it is; the file stays open until the range is released."""

    @property
    def file(self) -> File: ...
    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int: ...
    def release(self) -> None:
        """The range is sent, or will not be sent; this may be called twice."""
        ...


Bytes: TypeAlias = bytes | bytearray | memoryview
Chunk: TypeAlias = Bytes | FileRange
BYTES_TYPES = (bytearray, bytes, memoryview)


def coalesce(chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    """Small file ranges are read, and neighbouring bytes joined, so that most replies are one send."""
    if len(chunks) == 1:
        return chunks
    joined: list[Chunk] = []
    run: list[Bytes] = []
    copied = 0
    for chunk in chunks:
        if not isinstance(chunk, BYTES_TYPES):
            copied += chunk.size
            if chunk.size >= SENDFILE_BYTES_MIN or copied > COPIED_BYTES_MAX:
                if run:
                    joined.append(b"".join(run))
                    run = []
                joined.append(chunk)
                continue
            data = _read_range(chunk)
            chunk.release()
            chunk = data
        run.append(chunk)
        if len(chunk) >= SENDFILE_BYTES_MIN:
            # To copy a long answer would take longer than another send.
            joined += run
            run = []
    if run:
        joined.append(b"".join(run))
    return joined


def release_ranges(chunks: Iterable[Chunk]) -> None:
    for chunk in chunks:
        if not isinstance(chunk, BYTES_TYPES):
            chunk.release()


def _read_range(chunk: FileRange) -> bytes:
    data = os.pread(chunk.file.fileno(), chunk.size, chunk.position)
    if len(data) != chunk.size:
        raise OSError("the file was truncated while it was being sent")
    return data
