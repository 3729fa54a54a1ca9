"""Snapshots, which trim the log, and the removal of nodes that nothing refers to."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import replace

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import StoreError
from barnabas.metadata.zookeeper.claim import Claim
from barnabas.metadata.zookeeper.connection import NoNodeError
from barnabas.metadata.zookeeper.documents import encode_snapshot
from barnabas.metadata.zookeeper.layout import Head, Staged
from barnabas.metadata.zookeeper.reader import StoredBatch
from barnabas.metadata.zookeeper.writer import LogWriter

# A start reads every entry since the last snapshot, a few thousand per second.
ENTRIES_MAX = 5000
_DELETES_AT_ONCE = 200


class Trimmer:
    """Takes one snapshot at a time."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer
        self._connection = writer.connection
        self._paths = writer.paths
        # The end offset and the size of each entry that this store has seen, by sequence.
        self._seen: dict[int, tuple[int, int]] = {}

    def is_due(self, bytes_max: int) -> bool:
        head = self._writer.head
        return head is not None and (head.size > bytes_max or head.next - head.first > ENTRIES_MAX)

    def saw(self, stored: StoredBatch) -> None:
        self._seen[stored.sequence] = stored.batch.end_offset, stored.size

    async def snapshot(
        self, image: MetadataImage, claim: Claim, turn: asyncio.Lock, within_seconds: float
    ) -> None:
        """Store the image and trim the log up to it, unless a newer snapshot did that already.

        Only the commit needs the turn: meanwhile appends go on."""
        claim.check()
        head = await self._connection.until_answered(self._writer.reader.newest_head, within_seconds)
        if not head.start < image.offset <= head.end:
            return
        data = await asyncio.to_thread(self._encoded, image)
        name = f"snapshot-{image.offset}-{claim.epoch}-{secrets.token_hex(4)}"
        try:
            staged = await self._connection.until_answered(
                lambda: self._writer.stage(name, data), within_seconds
            )
            async with turn:
                await self._connection.until_answered(
                    lambda: self._commit(image.offset, staged, claim), within_seconds
                )
        finally:
            self._writer.in_flight.discard(name)
        await self.clean(claim, within_seconds)

    def _encoded(self, image: MetadataImage) -> bytes:
        return encode_snapshot(image.offset, self._writer.secrets.sealed(image.records()))

    async def _commit(self, offset: int, staged: Staged, claim: Claim) -> None:
        while True:
            head = await self._writer.refresh()
            if head.start >= offset:
                return
            first = await self._sequence_at(offset, head)
            size = sum(self._seen[sequence][1] for sequence in range(first, head.next))
            trimmed = replace(head, first=first, start=offset, size=size, snapshot=staged)
            claim.check()
            if await self._writer.commit(trimmed, claim):
                return

    async def _sequence_at(self, offset: int, head: Head) -> int:
        """The sequence of the entry that begins at the offset, or of the next append."""
        sequences = range(head.first, head.next)
        for sequence in sequences:
            if sequence not in self._seen:
                self.saw(await self._writer.reader.batch(sequence))
        self._seen = {sequence: self._seen[sequence] for sequence in sequences}
        for sequence, (end_offset, _) in self._seen.items():
            if end_offset == offset:
                return sequence + 1
        raise StoreError(f"cannot trim the metadata log at offset {offset}: it is inside a batch")

    async def clean(self, claim: Claim, within_seconds: float) -> None:
        """Remove trimmed entries, and parts that were replaced or never committed.

        Only the controller does this. Parts that an earlier controller writes after that stay until the next
        time."""
        await self._connection.until_answered(lambda: self._clean(claim), within_seconds)

    async def _clean(self, claim: Claim) -> None:
        entries = await self._connection.call("get_children", self._paths.log)
        staged = await self._connection.call("get_children", self._paths.staged)
        # In this order: what is not in flight any more was committed before the head is read, or never will.
        unknown = [name for name in staged if name not in self._writer.in_flight]
        head = await self._writer.reader.newest_head()
        claim.check()
        await self._delete(
            [self._paths.entry(sequence) for sequence in map(int, entries) if sequence < head.first]
        )
        for name in unknown:
            if not await self._is_in_use(name, head):
                await self._delete_staged(name)

    async def _is_in_use(self, name: str, head: Head) -> bool:
        """Whether the head or an entry points to these parts. Their name begins with what they are: a
        snapshot with its offset, or an append with its sequence."""
        if head.snapshot is not None and head.snapshot.name == name:
            return True
        kind, number, *_ = name.split("-")
        if kind != "append" or not head.first <= int(number) < head.next:
            return False
        try:
            staged = (await self._writer.reader.entry(int(number))).staged
        except NoNodeError:
            # A newer snapshot has trimmed the entry; its own cleaning removes the parts.
            return True
        return staged is not None and staged.name == name

    async def _delete_staged(self, name: str) -> None:
        path = f"{self._paths.staged}/{name}"
        parts = await self._connection.call("get_children", path)
        await self._delete([f"{path}/{part}" for part in parts])
        await self._delete([path])

    async def _delete(self, paths: Sequence[str]) -> None:
        for start in range(0, len(paths), _DELETES_AT_ONCE):
            portion = paths[start : start + _DELETES_AT_ONCE]
            deletes = [self._connection.call("delete", path) for path in portion]
            for result in await asyncio.gather(*deletes, return_exceptions=True):
                if isinstance(result, BaseException) and not isinstance(result, NoNodeError):
                    raise result
