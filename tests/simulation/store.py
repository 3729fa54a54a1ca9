"""A metadata store that all brokers of a simulation share, as ZooKeeper would be.

`SharedStore` is the ensemble: the log, the sessions, the controller's epoch. Each broker has a `StoreClient`,
whose link can be cut. A session whose link is cut for longer than the timeout expires there; the client finds
out when the link is back, and not before. An append over a bad link may or may not have happened."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import MetadataRecord
from barnabas.metadata.store import (
    BrokerRegistration,
    Cancel,
    ControllerFenced,
    OffsetConflict,
    RecordBatch,
    SessionWatcher,
    Snapshot,
    StoreError,
    StoreUnavailable,
    Update,
    Watcher,
)

SESSION_SECONDS = 6.0
LATENCY_SECONDS = 0.002
SNAPSHOT_RECORDS = 400


@dataclass(eq=False, slots=True)
class SharedStore:
    random: random.Random
    cluster_id: str = "simulated-cluster"
    start: Snapshot = field(default_factory=lambda: Snapshot(0, ()))
    batches: list[RecordBatch] = field(default_factory=list)
    epoch: int = 0
    controller: StoreClient | None = None
    clients: list[StoreClient] = field(default_factory=list)

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start.end_offset

    def updates(self, from_offset: int) -> list[Update]:
        if from_offset > self.end_offset:
            raise StoreError(f"the metadata log ends at {self.end_offset}")
        updates: list[Update] = []
        if from_offset < self.start.end_offset:
            updates.append(self.start)
        return updates + [batch for batch in self.batches if batch.offset >= from_offset]

    def living(self) -> Mapping[int, BrokerRegistration]:
        return {
            client.session.registration.id: client.session.registration
            for client in self.clients
            if client.session is not None and not client.is_expired
        }

    def changed(self) -> None:
        for client in self.clients:
            client.wake()

    def end_session_of(self, broker_id: int) -> None:
        """Another start of the broker replaces its old session, and its leadership if it has one."""
        for client in self.clients:
            if client.session is not None and client.session.registration.id == broker_id:
                self.expire(client)

    def expire(self, client: StoreClient) -> None:
        """The session of the client, and the leadership that goes with it, are over."""
        client.is_expired = True
        if self.controller is client:
            self.controller = None
            self.epoch += 1
        self.changed()


@dataclass(eq=False, slots=True)
class SimulatedSession:
    registration: BrokerRegistration
    _client: StoreClient
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    async def close(self) -> None:
        await self._client.end_session(self)


@dataclass(eq=False, slots=True)
class SimulatedLeadership:
    epoch: int
    _client: StoreClient
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    async def resign(self) -> None:
        self._client.resign(self)


class StoreClient:
    """One process's connection to the store. `cut` and `heal` are the faults of its link."""

    def __init__(self, shared: SharedStore) -> None:
        self._shared = shared
        self._loop = asyncio.get_running_loop()
        # What happens here belongs to this process, also when others cause it.
        self._context = contextvars.copy_context()
        self._random = shared.random
        self.session: SimulatedSession | None = None
        self.is_expired = False
        self._leadership: SimulatedLeadership | None = None
        self._watchers: dict[Watcher, int] = {}
        self._session_watchers: list[SessionWatcher] = []
        self._known_living: Mapping[int, BrokerRegistration] | None = None
        self._is_cut = False
        self._expiry: asyncio.TimerHandle | None = None
        self._wake_timer: asyncio.TimerHandle | None = None
        self._news = asyncio.Event()
        self._is_closed = False
        shared.clients.append(self)

    # ---- faults

    def cut(self) -> None:
        if self._is_cut or self._is_closed:
            return
        self._is_cut = True
        self._expiry = self._loop.call_later(
            SESSION_SECONDS, self._shared.expire, self, context=contextvars.Context()
        )

    def heal(self) -> None:
        if not self._is_cut:
            return
        self._is_cut = False
        if self._expiry is not None:
            self._expiry.cancel()
        if self.is_expired:
            # Only now the client finds out.
            self._lose_all()
            self.is_expired = False
        self.wake()

    def die(self) -> None:
        """The process was killed: the link ends, and the session expires after its timeout."""
        self._is_closed = True
        self._watchers.clear()
        self._session_watchers.clear()
        if not self._is_cut:
            self._loop.call_later(SESSION_SECONDS, self._remove, context=contextvars.Context())

    def _remove(self) -> None:
        self._shared.expire(self)
        if self in self._shared.clients:
            self._shared.clients.remove(self)

    def _lose_all(self) -> None:
        session, self.session = self.session, None
        leadership, self._leadership = self._leadership, None
        if session is not None:
            session.lost.set()
        if leadership is not None:
            leadership.lost.set()

    # ---- news, in order and a little late

    def wake(self) -> None:
        self._news.set()
        if self._wake_timer is None and not self._is_closed:
            delay = self._random.uniform(0.1, 3.0) * LATENCY_SECONDS
            self._wake_timer = self._loop.call_later(delay, self._deliver, context=self._context)

    def _deliver(self) -> None:
        self._wake_timer = None
        if self._is_cut or self._is_closed:
            return
        for watcher, offset in list(self._watchers.items()):
            updates = self._shared.updates(offset)
            if updates and watcher in self._watchers:
                self._watchers[watcher] = self._shared.end_offset
                watcher(updates)
        living = self._shared.living()
        if living != self._known_living:
            self._known_living = living
            for session_watcher in list(self._session_watchers):
                session_watcher(living)

    async def _reach(self) -> None:
        """The way to the store: it takes time, and fails when the link is cut."""
        await asyncio.sleep(self._random.uniform(0.5, 2.0) * LATENCY_SECONDS)
        if self._is_closed:
            # The process is dead: nothing that it began goes on.
            await asyncio.Event().wait()
        if self._is_cut:
            await asyncio.sleep(self._random.uniform(0.1, 1.0))
            raise StoreUnavailable("the simulated store cannot be reached")

    # ---- the store

    @property
    def cluster_id(self) -> str:
        return self._shared.cluster_id

    async def append(self, records: Sequence[MetadataRecord], expected_offset: int, epoch: int) -> int:
        await self._reach()
        shared = self._shared
        if epoch != shared.epoch:
            raise ControllerFenced(f"epoch {epoch} is over; the newest one is {shared.epoch}")
        if expected_offset != shared.end_offset:
            raise OffsetConflict(shared.end_offset)
        shared.batches.append(RecordBatch(expected_offset, tuple(records)))
        end_offset = shared.end_offset
        shared.changed()
        if self._is_cut or self._random.random() < 0.002:
            raise StoreUnavailable("the answer of the simulated store was lost")
        return end_offset

    async def read(self, from_offset: int) -> Sequence[Update]:
        await self._reach()
        return self._shared.updates(from_offset)

    async def newest_end(self) -> int:
        await self._reach()
        return self._shared.end_offset

    async def watch(self, from_offset: int, watcher: Watcher) -> Cancel:
        await self._reach()
        updates = self._shared.updates(from_offset)
        self._watchers[watcher] = self._shared.end_offset
        if updates:
            watcher(updates)
        return lambda: self._watchers.pop(watcher, None) and None

    @property
    def snapshot_due(self) -> bool:
        return sum(len(batch.records) for batch in self._shared.batches) > SNAPSHOT_RECORDS

    async def snapshot(self, image: MetadataImage, epoch: int) -> None:
        await self._reach()
        shared = self._shared
        if epoch != shared.epoch:
            raise ControllerFenced(f"epoch {epoch} is over; the newest one is {shared.epoch}")
        shared.start = Snapshot(image.offset, tuple(image.records()))
        shared.batches = [batch for batch in shared.batches if batch.offset >= image.offset]

    async def register_broker(self, registration: BrokerRegistration) -> SimulatedSession:
        await self._reach()
        while (other := self._shared.living().get(registration.id)) is not None:
            if other.incarnation == registration.previous_incarnation:
                self._shared.end_session_of(registration.id)
                break
            self._news.clear()
            await self._news.wait()
        self.session = SimulatedSession(registration, self)
        self._shared.changed()
        return self.session

    async def end_session(self, session: SimulatedSession) -> None:
        if self.session is session:
            self.session = None
            session.lost.set()
            self._shared.changed()

    async def watch_sessions(self, watcher: SessionWatcher) -> Cancel:
        await self._reach()
        self._session_watchers.append(watcher)
        self._known_living = self._shared.living()
        watcher(self._known_living)
        return lambda: self._session_watchers.remove(watcher) if watcher in self._session_watchers else None

    async def campaign(self, broker_id: int) -> SimulatedLeadership:
        while True:
            await self._reach()
            if self._shared.controller is None and not self.is_expired:
                break
            self._news.clear()
            await self._news.wait()
        self._shared.controller = self
        self._shared.epoch += 1
        self._leadership = SimulatedLeadership(self._shared.epoch, self)
        return self._leadership

    async def depose(self, epoch: int) -> None:
        await self._reach()
        holder = self._shared.controller
        if holder is not None and holder._leadership is not None and self._shared.epoch == epoch:
            holder.resign(holder._leadership)

    def resign(self, leadership: SimulatedLeadership) -> None:
        if self._leadership is leadership:
            self._leadership = None
            leadership.lost.set()
            if self._shared.controller is self:
                self._shared.controller = None
                self._shared.epoch += 1
                self._shared.changed()

    async def close(self) -> None:
        self._is_closed = True
        if self._leadership is not None:
            self.resign(self._leadership)
        if self.session is not None:
            await self.end_session(self.session)
        if self in self._shared.clients:
            self._shared.clients.remove(self)
