"""The embedded metadata store: one broker, one file, no other process. store.py says what it guarantees.

The log is a file (frames.py, logfile.py). It is written in a worker thread, so that fsync never blocks the
event loop. Secrets are encrypted in it if there is a key (secret_values.py). Sessions and leadership exist in
this process only (local.py). Used by one event loop."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from barnabas.metadata.files import Files, RealFiles
from barnabas.metadata.frames import Contents, Header, batch_frame, header_frame, snapshot_frame
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.local import LocalElection, LocalLeadership, LocalSession, LocalSessions
from barnabas.metadata.logfile import LogFile
from barnabas.metadata.records import MetadataRecord
from barnabas.metadata.secret_values import SecretValues
from barnabas.metadata.store import (
    BrokerRegistration,
    Cancel,
    ControllerFenced,
    OffsetConflict,
    RecordBatch,
    SessionWatcher,
    Snapshot,
    StoreError,
    Update,
    Watcher,
)

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

# In a log directory. It does not end with a dash and a number, so it does not look like a partition.
DIRECTORY_NAME = "barnabas-metadata"
SNAPSHOT_BYTES_MIN = 1 << 20


class EmbeddedStore:
    """Create it with `open`. A snapshot is due when the appends since the last one are larger than that
    snapshot and than the minimum."""

    def __init__(
        self, log_file: LogFile, contents: Contents, secrets: SecretValues, snapshot_bytes_min: int
    ) -> None:
        self._secrets = secrets
        self.cluster_id = contents.header.cluster_id
        self.sessions = LocalSessions()
        self.election = LocalElection(contents.epoch)
        self._file = log_file
        self._base: Snapshot | MetadataImage | None = None
        if contents.snapshot is not None:
            self._base = Snapshot(contents.snapshot.end_offset, secrets.opened(contents.snapshot.records))
        self._base_size = contents.base_size
        self._start_offset = contents.header.start_offset
        self._batches = [
            (position, RecordBatch(batch.offset, secrets.opened(batch.records)))
            for position, batch in contents.batches
        ]
        self._end_offset = contents.end_offset
        self._snapshot_bytes_min = snapshot_bytes_min
        self._watchers: list[Watcher] = []
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    @classmethod
    async def open(
        cls,
        directory: Path,
        *,
        cluster_id: str | None = None,
        files: Files | None = None,
        secrets: Sequence[str | None] = (),
        snapshot_bytes_min: int = SNAPSHOT_BYTES_MIN,
    ) -> "EmbeddedStore":
        """Load the store in `directory`, or create one with `cluster_id` or a new random id. `secrets` are
        password.encoder.secret and its predecessor."""
        log_file = LogFile(files or RealFiles(), directory)
        contents = await asyncio.to_thread(log_file.open, cluster_id)
        values = await asyncio.to_thread(SecretValues.of, secrets, contents.header.cluster_id)
        return cls(log_file, contents, values, snapshot_bytes_min)

    @property
    def end_offset(self) -> int:
        return self._end_offset

    @property
    def connection_state(self) -> None:
        return None

    async def append(self, records: Sequence[MetadataRecord], expected_offset: int, epoch: int) -> int:
        return await self._run_to_completion(self._append(tuple(records), expected_offset, epoch))

    async def _append(self, records: tuple[MetadataRecord, ...], expected_offset: int, epoch: int) -> int:
        async with self._turn:
            self._check_epoch(epoch)
            if expected_offset != self._end_offset:
                raise OffsetConflict(self._end_offset)
            if records:
                batch = RecordBatch(expected_offset, records)
                position = await asyncio.to_thread(self._write, batch, epoch)
                self._batches.append((position, batch))
                self._end_offset = batch.end_offset
                self._notify_watchers([batch])
            return self._end_offset

    def _write(self, batch: RecordBatch, epoch: int) -> int:
        return self._file.append(batch_frame(RecordBatch(batch.offset, self._stored(batch.records)), epoch))

    def _stored(self, records: Iterable[MetadataRecord]) -> tuple[MetadataRecord, ...]:
        return tuple(self._secrets.sealed(records) if self._secrets.keys else records)

    async def read(self, from_offset: int) -> Sequence[Update]:
        return self._updates(from_offset)

    async def newest_end(self) -> int:
        return self._end_offset

    async def watch(self, from_offset: int, watcher: Watcher) -> Cancel:
        updates = self._updates(from_offset)
        self._watchers.append(watcher)
        if updates:
            watcher(updates)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    @property
    def snapshot_due(self) -> bool:
        grown = self._file.size - self._base_size
        return grown > max(self._snapshot_bytes_min, self._base_size)

    async def snapshot(self, image: MetadataImage, epoch: int) -> None:
        await self._run_to_completion(self._snapshot(image, epoch))

    async def _snapshot(self, image: MetadataImage, epoch: int) -> None:
        async with self._turn:
            self._check_epoch(epoch)
            if not self._start_offset < image.offset <= self._end_offset:
                return
            kept = [(position, batch) for position, batch in self._batches if batch.offset >= image.offset]
            keep_from = kept[0][0] if kept else self._file.size
            header = Header(self.cluster_id, image.offset, epoch)
            base_size = await asyncio.to_thread(self._replace, header, image, keep_from)
            self._batches = [(position - keep_from + base_size, batch) for position, batch in kept]
            self._base, self._base_size, self._start_offset = image, base_size, image.offset

    def _replace(self, header: Header, image: MetadataImage, keep_from: int) -> int:
        snapshot = Snapshot(image.offset, self._stored(image.records()))
        base = header_frame(header) + snapshot_frame(snapshot)
        self._file.replace(base, keep_from)
        return len(base)

    async def register_broker(self, registration: BrokerRegistration) -> LocalSession:
        return self.sessions.register(registration)

    async def watch_sessions(self, watcher: SessionWatcher) -> Cancel:
        return self.sessions.watch(watcher)

    async def campaign(self, broker_id: int) -> LocalLeadership:
        return await self.election.campaign(broker_id)

    async def depose(self, epoch: int) -> None:
        self.election.depose(epoch)

    async def close(self) -> None:
        self._watchers.clear()
        self.election.end_leadership()
        self.sessions.end_all()
        async with self._turn:
            self._file.close()

    def _check_epoch(self, epoch: int) -> None:
        if epoch != self.election.epoch:
            raise ControllerFenced(
                f"controller epoch {epoch} is over; the current epoch is {self.election.epoch}"
            )

    def _updates(self, from_offset: int) -> list[Update]:
        if not 0 <= from_offset <= self._end_offset:
            raise StoreError(
                f"cannot read the metadata log at offset {from_offset}: it ends at {self._end_offset}"
            )
        updates: list[Update] = []
        if from_offset < self._start_offset and self._base is not None:
            base = self._base
            updates.append(
                base if isinstance(base, Snapshot) else Snapshot(base.offset, tuple(base.records()))
            )
        updates.extend(batch for _, batch in self._batches if batch.offset >= from_offset)
        return updates

    def _notify_watchers(self, updates: Sequence[Update]) -> None:
        for watcher in list(self._watchers):
            watcher(updates)

    async def _run_to_completion(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Finish the work even if its caller is cancelled: a thread that writes cannot be stopped."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.debug("a metadata write failed: %s", task.exception())
