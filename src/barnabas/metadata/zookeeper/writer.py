"""Writes the metadata log: every write is one transaction that checks the controller's claim and the version
of the head. So a controller that was replaced can write nothing, however late its request arrives.

If the connection is lost, it is unknown whether the transaction happened. The same transaction is then sent
again: both check the same version of the head, so at most one of them can happen. If the second one fails,
the entry in the log says whose append it is."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any

from barnabas.metadata.records import MetadataRecord
from barnabas.metadata.secret_values import SecretValues
from barnabas.metadata.store import (
    ControllerFenced,
    OffsetConflict,
    RecordBatch,
    StoreError,
    StoreUnavailable,
)
from barnabas.metadata.zookeeper.claim import Claim
from barnabas.metadata.zookeeper.connection import (
    BadVersionError,
    Connection,
    Disconnected,
    NodeExistsError,
    NoNodeError,
)
from barnabas.metadata.zookeeper.documents import PART_BYTES_MAX, encode_append, encode_pointer, split
from barnabas.metadata.zookeeper.layout import Head, Paths, Staged
from barnabas.metadata.zookeeper.reader import LogReader, StoredBatch

logger = logging.getLogger(__name__)

# An append with more records is encoded in a thread.
_IN_THREAD_FROM_RECORDS = 100


class LogWriter:
    """`append` and `commit` are called by one task at a time."""

    def __init__(
        self, connection: Connection, paths: Paths, reader: LogReader, secrets: SecretValues
    ) -> None:
        self.paths = paths
        self.secrets = secrets
        self.connection = connection
        self.reader = reader
        # The newest head that this store has read or written.
        self.head: Head | None = None
        # The names of parts that are being written and not committed yet: cleaning must leave them alone.
        self.in_flight: set[str] = set()

    async def append(
        self, records: Sequence[MetadataRecord], expected_offset: int, claim: Claim, within_seconds: float
    ) -> StoredBatch:
        batch = RecordBatch(expected_offset, tuple(records))
        append_id = token_hex(8)
        stored = RecordBatch(expected_offset, tuple(self.secrets.sealed(batch.records)))
        if len(batch.records) < _IN_THREAD_FROM_RECORDS:
            data = encode_append(stored, claim.epoch, append_id)
        else:
            data = await asyncio.to_thread(encode_append, stored, claim.epoch, append_id)
        attempt = _Append(self, batch, append_id, data, claim)
        try:
            return await self.connection.until_answered(attempt.run, within_seconds)
        finally:
            self.in_flight -= attempt.staged_names

    async def refresh(self) -> Head:
        self.head = await self.reader.newest_head()
        return self.head

    async def head_ending_at(self, offset: int) -> Head:
        """The head; OffsetConflict if the log does not end at this offset."""
        head = self.head
        if head is None or head.end != offset:
            head = await self.refresh()
        if head.end != offset:
            raise OffsetConflict(head.end)
        return head

    async def stage(self, name: str, data: bytes) -> Staged:
        """Write the parts of a large document. It may be repeated after a lost connection.

        The caller removes the name from `in_flight` when it has committed the document or given up."""
        self.in_flight.add(name)
        parts = split(data)
        await self._create(f"{self.paths.staged}/{name}", b"")
        for index, part in enumerate(parts):
            await self._create(self.paths.part(name, index), part)
        return Staged(name, len(parts))

    async def _create(self, path: str, data: bytes) -> None:
        try:
            await self.connection.call("create", path, data)
        except NodeExistsError:
            logger.debug("%s was written before the connection was lost", path)

    async def commit(self, head: Head, claim: Claim, more: Sequence[tuple[Any, ...]] = ()) -> bool:
        """Replace the head, if the claim holds and the node has still the version of `head`.

        False if another write came first; ControllerFenced if the claim is over."""
        conditions = claim.conditions(self.paths.epoch)
        change = ("set_data", self.paths.head, head.to_bytes(), head.version)
        results = await self.connection.transaction([*conditions, change, *more])
        if not any(isinstance(result, Exception) for result in results):
            self.head = replace(head, version=results[len(conditions)].version)
            return True
        if any(Connection.is_cause(result) for result in results[: len(conditions)]):
            raise ControllerFenced(
                f"controller epoch {claim.epoch} is over: another broker is the controller"
            )
        for result in results:
            if Connection.is_cause(result) and not isinstance(result, BadVersionError):
                raise StoreError(self.connection.unexpected(result))
        return False


class _Append:
    """One append, which may need several attempts."""

    def __init__(
        self, writer: LogWriter, batch: RecordBatch, append_id: str, data: bytes, claim: Claim
    ) -> None:
        self._writer = writer
        self._batch = batch
        self._id = append_id
        self._data = data
        self._claim = claim
        self.staged_names: set[str] = set()
        # The entry that an attempt without an answer may have written.
        self._uncertain: StoredBatch | None = None

    async def run(self) -> StoredBatch:
        try:
            return await self._attempt()
        except (OffsetConflict, ControllerFenced):
            # The earlier attempt may be the reason. If it has not happened until now, it never will.
            if self._uncertain is not None and await self._happened(self._uncertain):
                return self._uncertain
            raise

    async def _attempt(self) -> StoredBatch:
        writer, batch = self._writer, self._batch
        while True:
            self._claim.check()
            head = await writer.head_ending_at(batch.offset)
            stored = StoredBatch(head.next, batch, self._id, len(self._data))
            create = ("create", writer.paths.entry(head.next), await self._node(head.next))
            try:
                if await writer.commit(
                    head.after_append(len(batch.records), stored.size), self._claim, [create]
                ):
                    return stored
            except Disconnected:
                self._uncertain = stored
                raise
            await writer.refresh()

    async def _node(self, sequence: int) -> bytes:
        """The content of the entry: the records, or where they are."""
        if len(self._data) <= PART_BYTES_MAX:
            return self._data
        epoch = self._claim.epoch
        name = f"append-{sequence:010d}-{epoch}-{self._id}"
        self.staged_names.add(name)
        staged = await self._writer.stage(name, self._data)
        return encode_pointer(self._batch.offset, epoch, self._id, staged)

    async def _happened(self, stored: StoredBatch) -> bool:
        head = await self._writer.refresh()
        if stored.sequence < head.first:
            raise StoreUnavailable(
                "it is unknown whether the change of the metadata happened: the connection to ZooKeeper was "
                "lost, and the log was trimmed meanwhile"
            )
        try:
            return (await self._writer.reader.entry(stored.sequence)).id == self._id
        except NoNodeError:
            return False
