"""The interface of a metadata store: it holds the metadata log, and knows who is alive and who may write.

There are the embedded store (one broker, a local file) and the ZooKeeper store (a cluster). Controller and
broker know only this interface. Every store keeps these rules, and the contract tests in
tests/unit/metadata/test_store_contract.py check them:

Log. Records have offsets 0, 1, 2, ... An append is atomic: readers see all its records or none, so a topic
never appears without its partitions. An append succeeds only if `expected_offset` is the end of the log and
the controller epoch is the newest one; it returns when the records are durable. A store with a size limit (a
znode holds 1 MB) first writes a large batch elsewhere and then commits a pointer to it; callers never split a
batch.

Fencing. `campaign` waits for leadership and returns an epoch above that of every batch in the log. After
that, every append and snapshot with an older epoch raises ControllerFenced, from any process and at any later
time: ZooKeeper checks the version of the epoch node in the same transaction as the write.

Watching. A watcher is called on the event loop with all updates in offset order, each one once. What was
committed before the call of `watch` comes in one call, before `watch` returns. If the log was trimmed beyond
the watcher's offset, it gets a Snapshot, which replaces everything before.

Sessions. A registered broker is alive until its session is closed or lost. The store then sets `lost` of the
session and calls every session watcher. Session watchers get the whole set of living brokers, at once and
after every change; several quick changes may become one call.

Cancelling a call does not undo it: the append of a cancelled caller may still happen, with all its
records."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from barnabas.ids import Uuid
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import Listener, MetadataRecord


class StoreError(Exception):
    """The store failed; the message is one sentence for the operator."""


class OffsetConflict(StoreError):
    """Another controller appended first; `end_offset` is the current end of the log."""

    def __init__(self, end_offset: int) -> None:
        super().__init__(f"the metadata log already ends at {end_offset}")
        self.end_offset = end_offset


class ControllerFenced(StoreError):
    """A newer controller has taken over; the caller must stop writing."""


class BrokerIdTaken(StoreError):
    """Another session has this broker id."""


class StoreUnavailable(StoreError):
    """The write failed, or it is unknown whether it happened; reading still works."""


class StoreUnreachable(StoreUnavailable):
    """The servers of the store do not answer; the message says where they are and since when."""


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """The records of one append; the first has offset `offset`."""

    offset: int
    records: tuple[MetadataRecord, ...]

    @property
    def end_offset(self) -> int:
        return self.offset + len(self.records)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Records that build the image of `end_offset` from an empty one."""

    end_offset: int
    records: tuple[MetadataRecord, ...]


Update: TypeAlias = RecordBatch | Snapshot
Watcher: TypeAlias = Callable[[Sequence[Update]], None]
Cancel: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """What a broker says about itself when it starts; `incarnation` is new for each start of the process.

    `previous_epoch` is the broker epoch of the last start, if that one ended cleanly; otherwise -1. After an
    unclean stop the log may lack records that were on it before (KIP-966).

    `previous_incarnation` is that of the last start with the same data directory, if it is known. The store
    then replaces that registration at once, without waiting for its session to expire: the process cannot
    be running, because this one has the lock of the directory. It is not part of what others see."""

    id: int
    incarnation: Uuid
    listeners: tuple[Listener, ...]
    rack: str | None = None
    previous_epoch: int = -1
    previous_incarnation: Uuid | None = field(default=None, compare=False)


SessionWatcher: TypeAlias = Callable[[Mapping[int, BrokerRegistration]], None]


class Session(Protocol):
    """A broker is alive while it has a session."""

    @property
    def lost(self) -> asyncio.Event: ...

    async def close(self) -> None: ...


class Leadership(Protocol):
    """The right to write metadata, for one controller epoch."""

    @property
    def epoch(self) -> int: ...

    @property
    def lost(self) -> asyncio.Event: ...

    async def resign(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """The connection to the servers of a store, and how often it and its session were lost."""

    is_connected: bool
    disconnects: int
    expired_sessions: int


class MetadataStore(Protocol):
    @property
    def cluster_id(self) -> str: ...

    @property
    def connection_state(self) -> ConnectionState | None:
        """None if the store is a local file."""
        ...

    async def append(self, records: Sequence[MetadataRecord], expected_offset: int, epoch: int) -> int:
        """Append the records at `expected_offset` and return the new end of the log.

        Raises OffsetConflict, ControllerFenced or StoreUnavailable."""
        ...

    async def read(self, from_offset: int) -> Sequence[Update]:
        """All updates from that offset on; the first is a Snapshot if the log was trimmed beyond the offset.

        The offset is 0 or an earlier end offset, so it is never inside a batch. StoreError if it is after the
        end of the log."""
        ...

    async def newest_end(self) -> int:
        """The end of the log, with everything that anybody committed before this call. StoreUnavailable if
        the store does not answer."""
        ...

    async def watch(self, from_offset: int, watcher: Watcher) -> Cancel: ...

    @property
    def snapshot_due(self) -> bool:
        """Whether the log is large enough for a snapshot."""
        ...

    async def snapshot(self, image: MetadataImage, epoch: int) -> None:
        """Store the image and trim the log up to its offset. After a failure the log is unchanged."""
        ...

    async def register_broker(self, registration: BrokerRegistration) -> Session:
        """Raises BrokerIdTaken while another session has that id."""
        ...

    async def watch_sessions(self, watcher: SessionWatcher) -> Cancel: ...

    async def campaign(self, broker_id: int) -> Leadership:
        """Wait to become the controller. There is one at a time. Cancelling the call ends the wait."""
        ...

    async def depose(self, epoch: int) -> None:
        """End the leadership with this epoch, which another broker may have; the next candidate gets one.
        Nothing happens if it has ended already."""
        ...

    async def close(self) -> None:
        """Give up sessions and leadership, and free all resources. May be called twice."""
        ...
