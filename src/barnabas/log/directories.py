"""One of the broker's log.dirs: its lock, its identity, its checkpoints, and whether its disk still works."""

import fcntl
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from barnabas.ids import TopicPartition, Uuid, random_uuid
from barnabas.log import names
from barnabas.log.checkpoints import (
    MetaProperties,
    read_meta_properties,
    read_offsets,
    take_clean_shutdown,
    write_clean_shutdown,
    write_meta_properties,
    write_offsets,
)
from barnabas.log.disk import Disk, FileHandle
from barnabas.log.errors import LogDirError

logger = logging.getLogger(__name__)


class LogDirectory:
    def __init__(self, disk: Disk, path: Path) -> None:
        self.disk = disk
        self.path = path
        self.directory_id: Uuid | None = None
        self.was_clean = False
        self.online = True
        # What the checkpoint of high watermarks holds; empty if that is not known.
        self.written_high_watermarks: dict[TopicPartition, int] = {}
        # Partitions that were on the way to this directory when the broker ended.
        self.interrupted_moves: list[TopicPartition] = []
        self._lock: FileHandle | None = None

    def __repr__(self) -> str:
        return f"LogDirectory({self.path})"

    def claim(self, cluster_id: str, node_id: int) -> None:
        """Lock the directory and check that it belongs to this node; a new directory is given to it.

        LogDirError stops the broker; after an OSError the broker goes on without this directory."""
        self.disk.mkdir(self.path)
        self._take_lock()
        try:
            meta = read_meta_properties(self.disk, self.path)
        except ValueError as problem:
            raise LogDirError(str(problem)) from problem
        if meta is None:
            meta = MetaProperties(cluster_id, node_id, random_uuid())
            write_meta_properties(self.disk, self.path, meta)
        if (meta.cluster_id, meta.node_id) != (cluster_id, node_id):
            raise LogDirError(
                f"{self.path} belongs to node {meta.node_id} of cluster {meta.cluster_id}, "
                f"not to node {node_id} of cluster {cluster_id}"
            )
        self.directory_id = meta.directory_id
        self.was_clean = take_clean_shutdown(self.disk, self.path)

    def _take_lock(self) -> None:
        # The operating system releases the lock when the process ends, however it ends.
        handle = FileHandle(os.open(self.path / names.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
        try:
            fcntl.flock(handle.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LogDirError(f"{self.path} is in use by another process") from None
        self._lock = handle

    def release(self) -> None:
        self._lock = None

    def partitions(self) -> list[TopicPartition]:
        """Partitions that have a directory here. What the last broker left behind is removed: directories of
        deleted partitions, checkpoints that were not installed, and directories of moves that did not end,
        which `interrupted_moves` has then: they begin again."""
        partitions: list[TopicPartition] = []
        for name in self.disk.listdir(self.path):
            moved = names.parse_future_directory(name)
            if moved is not None:
                self.interrupted_moves.append(moved)
            if names.is_delete_directory(name) or moved is not None:
                logger.info("removing %s, which a deletion or a move left behind", self.path / name)
                self.disk.rmtree(self.path / name)
                continue
            if names.is_pending_checkpoint(name):
                self.disk.unlink(self.path / name)
                continue
            partition = names.parse_partition_directory(name)
            if partition is not None and (self.path / name).is_dir():
                partitions.append(partition)
        return partitions

    def read(self, checkpoint: str) -> dict[TopicPartition, int]:
        return read_offsets(self.disk, self.path / checkpoint)

    def write(self, checkpoint: str, offsets: Mapping[TopicPartition, int]) -> None:
        write_offsets(self.disk, self.path / checkpoint, offsets)

    def mark_clean(self, broker_epoch: int) -> None:
        write_clean_shutdown(self.disk, self.path, broker_epoch)
