"""The file of the embedded store: opened, appended to, replaced by a snapshot. Blocking; one caller.

This is true at every moment, even after a crash: `metadata.log` is a complete header (and snapshot), then
every append that returned, then at most one incomplete frame. A new file gets that name only by a rename,
after it was synced."""

import logging
from pathlib import Path

from barnabas.ids import random_uuid, uuid_to_string
from barnabas.metadata.files import Files
from barnabas.metadata.frames import Contents, Header, header_frame, parse
from barnabas.metadata.records import UnknownRecord
from barnabas.metadata.store import StoreError, StoreUnavailable

logger = logging.getLogger(__name__)

LOG_NAME = "metadata.log"
NEW_LOG_NAME = "metadata.log.new"
LOCK_NAME = "metadata.lock"


def in_use(directory: Path) -> str:
    """Why the metadata cannot be opened: a broker has locked them."""
    return (
        f"another broker is using the metadata in {directory}: stop it with "
        f"`barnabas server-stop --data-dir {directory.parent}`, or choose another data directory"
    )


class LogFile:
    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._directory = directory
        self._lock: int | None = None
        self._descriptor: int | None = None
        self._broken: str | None = None
        self.size = 0

    def open(self, cluster_id: str | None) -> Contents:
        """Lock the directory and load the log; create an empty log if there is none."""
        try:
            return self._open(cluster_id)
        except OSError as error:
            raise StoreError(f"cannot open the metadata in {self._directory}: {error}") from error
        except UnknownRecord as error:
            raise StoreError(str(error)) from error

    def _open(self, cluster_id: str | None) -> Contents:
        if not self._files.exists(self._directory):
            self._files.make_directory(self._directory)
            self._files.sync_directory(self._directory.parent)
        self._lock = self._files.lock(self._directory / LOCK_NAME)
        if self._lock is None:
            raise StoreError(in_use(self._directory))
        try:
            return self._load(cluster_id)
        except BaseException:
            self.close()
            raise

    def _load(self, cluster_id: str | None) -> Contents:
        path = self._directory / LOG_NAME
        self._files.remove(self._directory / NEW_LOG_NAME)
        if not self._files.exists(path):
            header = Header(cluster_id or uuid_to_string(random_uuid()), 0, 0)
            self._descriptor = self._write_new(header_frame(header))
        else:
            self._descriptor = self._files.open(path)
        data = self._files.read(path)
        contents = parse(data)
        stored_id = contents.header.cluster_id
        if cluster_id is not None and cluster_id != stored_id:
            raise StoreError(f"{self._directory} belongs to cluster {stored_id}, not to {cluster_id}")
        if contents.size < len(data):
            logger.warning(
                "removed %d bytes of an incomplete change from %s at byte %d",
                len(data) - contents.size,
                path,
                contents.size,
            )
            self._files.truncate(self._descriptor, contents.size)
            self._files.sync(self._descriptor)
        self.size = contents.size
        return contents

    def append(self, frame: bytes) -> int:
        """Write a frame durably at the end, and return its position."""
        descriptor = self._writable()
        position = self.size
        try:
            self._files.write(descriptor, frame, position)
        except OSError as error:
            self._undo_write(descriptor)
            raise StoreUnavailable(f"cannot write the metadata log: {error}") from error
        try:
            self._files.sync(descriptor)
        except OSError as error:
            # After a failed fsync it is unknown what is on disk, and a second fsync would report success.
            self._broken = (
                f"cannot sync the metadata log; it accepts no changes until the broker restarts: {error}"
            )
            raise StoreUnavailable(self._broken) from error
        self.size = position + len(frame)
        return position

    def replace(self, base: bytes, keep_from: int) -> None:
        """Replace the log with `base` and its own frames from byte `keep_from` on."""
        old = self._writable()
        kept = self._files.read(self._directory / LOG_NAME)[keep_from : self.size]
        try:
            self._descriptor = self._write_new(base + kept)
        except OSError as error:
            raise StoreUnavailable(f"cannot write the metadata snapshot: {error}") from error
        self.size = len(base) + len(kept)
        self._files.close(old)

    def close(self) -> None:
        for descriptor in (self._descriptor, self._lock):
            if descriptor is not None:
                self._files.close(descriptor)
        self._descriptor = self._lock = None

    def _writable(self) -> int:
        if self._broken is not None:
            raise StoreUnavailable(self._broken)
        if self._descriptor is None:
            raise StoreUnavailable("the metadata store is closed")
        return self._descriptor

    def _undo_write(self, descriptor: int) -> None:
        try:
            self._files.truncate(descriptor, self.size)
        except OSError as error:
            # The incomplete frame stays at the end, so nothing may be written after it.
            self._broken = f"the metadata log accepts no changes until the broker restarts: {error}"

    def _write_new(self, data: bytes) -> int:
        """Replace the log with a new file; the old one does not change before the new one is synced."""
        new_path = self._directory / NEW_LOG_NAME
        descriptor = self._files.create(new_path)
        try:
            self._files.write(descriptor, data, 0)
            self._files.sync(descriptor)
            self._files.rename(new_path, self._directory / LOG_NAME)
        except OSError:
            self._files.close(descriptor)
            self._files.remove(new_path)
            raise
        try:
            self._files.sync_directory(self._directory)
        except OSError as error:
            # A power failure could bring back the old file, so no change to the new one may be acknowledged.
            self._files.close(descriptor)
            self._broken = (
                "cannot sync the metadata directory; the log accepts no changes until the broker restarts: "
                f"{error}"
            )
            raise
        return descriptor
