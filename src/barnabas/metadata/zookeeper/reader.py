"""Reads the metadata log: its head, entries, snapshot and staged parts.

A reader may meet a log that is being trimmed: an entry that the head named is gone. It then reads the newer
head and begins again."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from barnabas.metadata.secret_values import SecretValues
from barnabas.metadata.store import RecordBatch, Snapshot, StoreError, Update
from barnabas.metadata.zookeeper.connection import Connection, NoNodeError
from barnabas.metadata.zookeeper.documents import DamagedDocument, Entry, decode_append, decode_snapshot
from barnabas.metadata.zookeeper.layout import Head, Paths, Staged

Decoded = TypeVar("Decoded")

# So many reads are under way at a time: each waits in a queue, and its answer in memory.
_READS_AT_ONCE = 256
# Longer documents are decoded in a thread, so that the loop can serve others meanwhile.
_IN_THREAD_FROM_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch with the sequence of its entry, and the size of its node and staged parts."""

    sequence: int
    batch: RecordBatch
    append_id: str
    size: int


@dataclass(frozen=True, slots=True)
class LogPart:
    """What was read: a snapshot if the log was trimmed, then the batches up to `head`."""

    head: Head
    snapshot: Snapshot | None
    batches: list[StoredBatch]

    def updates(self, from_offset: int) -> list[Update]:
        updates: list[Update] = [] if self.snapshot is None else [self.snapshot]
        updates.extend(stored.batch for stored in self.batches if stored.batch.offset >= from_offset)
        return updates


class LogReader:
    def __init__(self, connection: Connection, paths: Paths, secrets: SecretValues) -> None:
        self._connection = connection
        self._paths = paths
        self._secrets = secrets

    async def head(self, watch: Callable[[object], None] | None = None) -> Head:
        data, stat = await self._connection.call("get", self._paths.head, watch)
        return Head.from_bytes(data, stat.version)

    async def newest_head(self) -> Head:
        """The head with everything that was committed before this call, on any server of the ensemble."""
        await self._connection.call("sync", self._paths.head)
        return await self.head()

    async def from_offset(self, offset: int) -> LogPart:
        """The log from an offset on. StoreError if it is after the end."""
        while True:
            head = await self.newest_head()
            if not 0 <= offset <= head.end:
                raise StoreError(f"cannot read the metadata log at offset {offset}: it ends at {head.end}")
            try:
                if offset == head.end:
                    return LogPart(head, None, [])
                snapshot = await self.snapshot(head) if offset < head.start else None
                return LogPart(head, snapshot, await self.batches(head.first, head.next))
            except NoNodeError:
                await self._explain_gap(head)

    async def from_sequence(self, sequence: int, head: Head) -> LogPart:
        """The log from an entry on, up to `head`."""
        while True:
            try:
                snapshot = await self.snapshot(head) if sequence < head.first else None
                return LogPart(head, snapshot, await self.batches(max(sequence, head.first), head.next))
            except NoNodeError:
                await self._explain_gap(head)
                head = await self.newest_head()

    async def _explain_gap(self, head: Head) -> None:
        """Returns if an entry is missing because the log was trimmed meanwhile."""
        if (await self.newest_head()).first <= head.first:
            raise DamagedDocument("the metadata log in ZooKeeper is damaged: an entry is missing")

    async def batches(self, first: int, end: int) -> list[StoredBatch]:
        batches: list[StoredBatch] = []
        for start in range(first, end, _READS_AT_ONCE):
            sequences = range(start, min(end, start + _READS_AT_ONCE))
            batches += await asyncio.gather(*map(self.batch, sequences))
        return batches

    async def batch(self, sequence: int) -> StoredBatch:
        """One entry, with its records wherever they are. NoNodeError if it was trimmed."""
        data, _ = await self._connection.call("get", self._paths.entry(sequence))
        entry = await _decoded(decode_append, data)
        size = len(data)
        if entry.staged is not None:
            records = await self._joined(entry.staged)
            size += len(records)
            entry = await _decoded(decode_append, records)
        batch = RecordBatch(entry.offset, self._secrets.opened(entry.records))
        return StoredBatch(sequence, batch, entry.id, size)

    async def entry(self, sequence: int) -> Entry:
        """The entry itself; its records may be elsewhere."""
        data, _ = await self._connection.call("get", self._paths.entry(sequence))
        return await _decoded(decode_append, data)

    async def snapshot(self, head: Head) -> Snapshot:
        if head.snapshot is None:
            raise DamagedDocument("the metadata log in ZooKeeper is damaged: its snapshot is missing")
        stored = await _decoded(decode_snapshot, await self._joined(head.snapshot))
        return Snapshot(stored.end_offset, self._secrets.opened(stored.records))

    async def _joined(self, staged: Staged) -> bytes:
        paths = [self._paths.part(staged.name, index) for index in range(staged.parts)]
        parts = await asyncio.gather(*(self._connection.call("get", path) for path in paths))
        return b"".join(data for data, _ in parts)


async def _decoded(decode: Callable[[bytes], Decoded], data: bytes) -> Decoded:
    if len(data) < _IN_THREAD_FROM_BYTES:
        return decode(data)
    return await asyncio.to_thread(decode, data)
