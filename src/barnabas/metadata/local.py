"""Sessions and leadership inside one process, for the embedded store.

A session exists until it is closed or ended. Candidates get the leadership in the order in which they came.
Used by one event loop."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from barnabas.metadata.store import BrokerIdTaken, BrokerRegistration, Cancel, SessionWatcher


@dataclass(eq=False, slots=True)
class LocalSession:
    registration: BrokerRegistration
    _sessions: "LocalSessions"
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    async def close(self) -> None:
        self._sessions.end(self)


class LocalSessions:
    def __init__(self) -> None:
        self._sessions: dict[int, LocalSession] = {}
        self._watchers: list[SessionWatcher] = []

    def register(self, registration: BrokerRegistration) -> LocalSession:
        if registration.id in self._sessions:
            raise BrokerIdTaken(f"another broker with id {registration.id} is running in this cluster")
        session = self._sessions[registration.id] = LocalSession(registration, self)
        self._notify_watchers()
        return session

    def end(self, session: LocalSession) -> None:
        """End a session, because its owner closed it or it expired."""
        if self._sessions.get(session.registration.id) is session:
            del self._sessions[session.registration.id]
            session.lost.set()
            self._notify_watchers()

    def watch(self, watcher: SessionWatcher) -> Cancel:
        self._watchers.append(watcher)
        watcher(self._living())
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    def end_all(self) -> None:
        for session in list(self._sessions.values()):
            self.end(session)

    def _living(self) -> Mapping[int, BrokerRegistration]:
        return {broker_id: session.registration for broker_id, session in self._sessions.items()}

    def _notify_watchers(self) -> None:
        for watcher in list(self._watchers):
            watcher(self._living())


@dataclass(eq=False, slots=True)
class LocalLeadership:
    broker_id: int
    epoch: int
    _release: "Callable[[LocalLeadership], None]"
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    async def resign(self) -> None:
        self._release(self)


class LocalElection:
    """One broker has the leadership at a time; each leadership gets a new epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._holder: LocalLeadership | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def campaign(self, broker_id: int) -> LocalLeadership:
        while self._holder is not None:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._give_up(turn)
                raise
        self.epoch += 1
        self._holder = LocalLeadership(broker_id, self.epoch, self.release)
        return self._holder

    def depose(self, epoch: int) -> None:
        if self._holder is not None and self._holder.epoch == epoch:
            self.release(self._holder)

    def release(self, leadership: LocalLeadership) -> None:
        """End a leadership, because its holder resigned or lost it."""
        if self._holder is leadership:
            self._holder = None
            # The epoch rises at once, so that a write of the old holder fails even before there is a new one.
            self.epoch += 1
            leadership.lost.set()
            self._wake_next()

    def end_leadership(self) -> None:
        if self._holder is not None:
            self.release(self._holder)

    def _give_up(self, turn: "asyncio.Future[None]") -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)
        elif self._holder is None:
            # This candidate was woken and cancelled at the same time: wake the next one instead.
            self._wake_next()

    def _wake_next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
