"""Brings new entries of the log to the watchers, in order and each one once.

One task watches the head, which changes with every append. A watch fires once, and a new connection may have
missed several changes, so the task always reads the head again while it sets the next watch, and then reads
every entry up to that head."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.metadata.store import Cancel, StoreError, Update, Watcher
from barnabas.metadata.zookeeper.connection import Connection
from barnabas.metadata.zookeeper.reader import LogPart, LogReader, StoredBatch

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


@dataclass(eq=False, slots=True)
class _Reader:
    """A watcher with the sequence of the next entry that it gets."""

    watcher: Watcher
    sequence: int


class Feed:
    def __init__(self, connection: Connection, reader: LogReader) -> None:
        self._connection = connection
        self._reader = reader
        self._readers: list[_Reader] = []
        self._changed = asyncio.Event()
        self._watch = connection.event_setter(self._changed)
        self._task: asyncio.Task[None] | None = None

    async def watch(self, from_offset: int, watcher: Watcher, within_seconds: float) -> Cancel:
        part = await self._connection.until_answered(
            lambda: self._reader.from_offset(from_offset), within_seconds
        )
        reader = _Reader(watcher, part.head.next)
        self._readers.append(reader)
        updates = part.updates(from_offset)
        if updates:
            watcher(updates)
        # Entries that came during the read were not given to this watcher.
        self._changed.set()
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())
        return lambda: self._readers.remove(reader) if reader in self._readers else None

    def appended(self, stored: StoredBatch) -> None:
        """Give an append of this store to the watchers at once, without reading it back."""
        for reader in list(self._readers):
            if reader.sequence == stored.sequence:
                self._deliver(reader, [stored.batch], stored.sequence + 1)

    async def close(self) -> None:
        self._readers.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._connection.until_answered(self._catch_up)
            except StoreError as error:
                if self._connection.is_closed:
                    return
                logger.error("cannot read the metadata log: %s", error)
                await self._retry_later()
            except Exception:
                logger.exception("cannot follow the metadata log")
                await self._retry_later()

    async def _retry_later(self) -> None:
        await asyncio.sleep(_RETRY_SECONDS)
        self._changed.set()

    async def _catch_up(self) -> None:
        lowest = min((reader.sequence for reader in self._readers), default=None)
        if lowest is None:
            await self._reader.head(self._watch)
            return
        # Mostly there is one new entry: it is requested together with the head, which saves a round trip.
        head, entry = await asyncio.gather(
            self._reader.head(self._watch), self._reader.batch(lowest), return_exceptions=True
        )
        if isinstance(head, BaseException):
            raise head
        if isinstance(entry, StoredBatch) and head.first <= lowest == head.next - 1:
            part = LogPart(head, None, [entry])
        elif lowest < head.next:
            part = await self._reader.from_sequence(lowest, head)
        else:
            return
        for reader in list(self._readers):
            self._give(reader, part)

    def _give(self, reader: _Reader, part: LogPart) -> None:
        updates: list[Update] = []
        if reader.sequence < part.head.first and part.snapshot is not None:
            updates.append(part.snapshot)
        updates.extend(stored.batch for stored in part.batches if stored.sequence >= reader.sequence)
        if updates:
            self._deliver(reader, updates, part.head.next)

    def _deliver(self, reader: _Reader, updates: Sequence[Update], sequence: int) -> None:
        """The watcher gets the same updates again if it fails: without them its image would be wrong."""
        if reader not in self._readers:
            return
        try:
            reader.watcher(updates)
        except Exception:
            logger.exception("a watcher of the metadata log failed at entry %d", reader.sequence)
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._changed.set)
        else:
            reader.sequence = sequence
