"""The metadata store port: where the metadata log lives, who is alive, and who may write.

Two stores are meant to stand behind it: the embedded one (one broker, a local file) and a ZooKeeper one (a
cluster). Controller and broker know only this file. Rules that every store keeps; the contract suite in
tests/unit/metadata/test_store_contract.py holds each store to them:

Log. Records have offsets 0, 1, 2, ... An append is atomic: readers see all its records or none, so a topic
never appears without its partitions. It is compare-and-append: it succeeds only when `expected_offset` is the
end of the log, and only for the newest controller epoch; it returns after it is durable. A store with small
values (a znode holds 1 MB) stages a large batch first and commits a pointer to it; callers do not split.

Fencing. `campaign` waits for leadership and returns an epoch above that of every batch in the log. From then
on, appends and snapshots under any older epoch raise ControllerFenced, wherever they come from and however
late: ZooKeeper checks the epoch node's version in the same multi-op as the write.

Watching. A watcher is called on the event loop with updates in offset order, none missing and none twice. All
that was committed when `watch` is called arrives, as one call, before it returns. Where the log was trimmed
beyond the watcher's offset it gets a Snapshot, which replaces everything it knew.

Sessions. A registered broker is alive until its session is closed or lost; the store then tells the session
(`lost` is set) and every session watcher. Session watchers get the whole set of living brokers, at once and
after every change; quick changes may be merged, so it is the set that counts and not the steps.

Cancelling a call does not undo it: the append of a cancelled caller may still happen, whole."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from barnabas.ids import Uuid
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import Listener, MetadataRecord


class StoreError(Exception):
    """The store cannot do what was asked; the message is one sentence for the operator."""


class OffsetConflict(StoreError):
    """Somebody else appended first; `end_offset` is where the log ends now."""

    def __init__(self, end_offset: int) -> None:
        super().__init__(f"the metadata log already ends at {end_offset}")
        self.end_offset = end_offset


class ControllerFenced(StoreError):
    """A newer controller has taken over; the caller must stop writing."""


class BrokerIdTaken(StoreError):
    """Another living session has this broker id."""


class StoreUnavailable(StoreError):
    """The write did not happen, or it is unknown whether it did; reading goes on."""


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
    """Records that rebuild the image of `end_offset` from nothing."""

    end_offset: int
    records: tuple[MetadataRecord, ...]


Update: TypeAlias = RecordBatch | Snapshot
Watcher: TypeAlias = Callable[[Sequence[Update]], None]
Cancel: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """What a broker says of itself when it starts; `incarnation` is fresh for each start of the process."""

    id: int
    incarnation: Uuid
    listeners: tuple[Listener, ...]
    rack: str | None = None


SessionWatcher: TypeAlias = Callable[[Mapping[int, BrokerRegistration]], None]


class Session(Protocol):
    """A broker's sign of life."""

    @property
    def lost(self) -> asyncio.Event: ...

    async def close(self) -> None: ...


class Leadership(Protocol):
    """The right to write, for one epoch."""

    @property
    def epoch(self) -> int: ...

    @property
    def lost(self) -> asyncio.Event: ...

    async def resign(self) -> None: ...


class MetadataStore(Protocol):
    @property
    def cluster_id(self) -> str: ...

    async def append(self, records: Sequence[MetadataRecord], expected_offset: int, epoch: int) -> int:
        """Append the records at `expected_offset` and return the new end of the log.

        Raises OffsetConflict, ControllerFenced or StoreUnavailable."""
        ...

    async def read(self, from_offset: int) -> Sequence[Update]:
        """All updates from that offset on; a Snapshot first when the log was trimmed beyond it.

        The offset is 0 or an end offset seen before, so it never falls inside a batch; StoreError if beyond
        the end of the log."""
        ...

    async def watch(self, from_offset: int, watcher: Watcher) -> Cancel: ...

    @property
    def snapshot_due(self) -> bool:
        """Whether the log has grown enough for a snapshot to be worth writing."""
        ...

    async def snapshot(self, image: MetadataImage, epoch: int) -> None:
        """Store the image and trim the log up to its offset. On failure the log is as it was."""
        ...

    async def register_broker(self, registration: BrokerRegistration) -> Session:
        """Raises BrokerIdTaken while another session of that id lives."""
        ...

    async def watch_sessions(self, watcher: SessionWatcher) -> Cancel: ...

    async def campaign(self, broker_id: int) -> Leadership:
        """Wait to be the controller. One holder at a time; a cancelled wait leaves the queue."""
        ...

    async def close(self) -> None:
        """Give up sessions and leadership and let go of all resources; safe to call twice."""
        ...
