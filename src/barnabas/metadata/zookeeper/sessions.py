"""Who is alive: one ephemeral node per broker, which ends with the broker's session."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import astuple, dataclass
from typing import Any

from barnabas.ids import Uuid, uuid_from_string, uuid_to_string
from barnabas.metadata.records import Listener
from barnabas.metadata.store import (
    BrokerIdTaken,
    BrokerRegistration,
    Cancel,
    SessionWatcher,
    StoreError,
)
from barnabas.metadata.zookeeper.connection import Connection, NodeExistsError, NoNodeError
from barnabas.metadata.zookeeper.layout import Paths
from barnabas.metadata.zookeeper.own_node import OwnNode
from barnabas.metadata.zookeeper.tasks import Tasks

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Node:
    """The node of a broker: what it says, and the session that it belongs to."""

    registration: BrokerRegistration
    since_ms: int
    session_id: int | None
    version: int

    @classmethod
    def from_bytes(cls, data: bytes, stat: Any) -> "_Node":
        fields = json.loads(data)
        registration = BrokerRegistration(
            fields["id"],
            uuid_from_string(fields["incarnation"]),
            tuple(Listener(*listener) for listener in fields["listeners"]),
            fields.get("rack"),
            fields.get("previous_epoch", -1),
        )
        return cls(registration, fields.get("since_ms", 0), stat.owner_session_id, stat.version)


def _to_bytes(registration: BrokerRegistration) -> bytes:
    fields = {
        "id": registration.id,
        "incarnation": uuid_to_string(registration.incarnation),
        "listeners": [astuple(listener) for listener in registration.listeners],
        "rack": registration.rack,
        "previous_epoch": registration.previous_epoch,
        "since_ms": int(time.time() * 1000),
    }
    return json.dumps(fields, separators=(",", ":")).encode()


class ZooKeeperSession:
    def __init__(
        self, registration: BrokerRegistration, close: "Callable[[ZooKeeperSession], Awaitable[None]]"
    ) -> None:
        self.registration = registration
        self.lost = asyncio.Event()
        self.node: OwnNode | None = None
        self._close = close

    async def close(self) -> None:
        if not self.lost.is_set():
            await self._close(self)


class Sessions:
    def __init__(self, connection: Connection, paths: Paths, tasks: Tasks) -> None:
        self._connection = connection
        self._paths = paths
        self._tasks = tasks
        self._sessions: dict[int, ZooKeeperSession] = {}
        self._watchers: list[SessionWatcher] = []
        self._last_sent: Mapping[int, BrokerRegistration] = {}
        self._changed = asyncio.Event()
        self._watch = connection.event_setter(self._changed)
        self._task: asyncio.Task[None] | None = None
        connection.when_session_lost(self.end_all)

    async def register(self, registration: BrokerRegistration, previous: Uuid | None) -> ZooKeeperSession:
        """Register a broker; BrokerIdTaken while another session has its id.

        The node of an earlier start of the same broker (`previous` is its incarnation) is replaced at once.
        Any other node may also be of an earlier start whose session has not expired yet, so this waits for
        the session timeout before it gives up."""
        settings = self._connection.settings
        deadline = time.monotonic() + settings.session_timeout_seconds + _RETRY_SECONDS
        while True:
            generation = self._connection.generation
            taken = await self._connection.until_answered(
                lambda: self._create(registration, previous), settings.session_timeout_seconds
            )
            if taken is not None:
                await self._wait_for_end(taken, deadline)
            elif generation == self._connection.generation:
                return self._begin(registration)

    def _begin(self, registration: BrokerRegistration) -> ZooKeeperSession:
        session = ZooKeeperSession(registration, self._close_session)
        path = self._paths.broker(registration.id)
        session.node = OwnNode(self._connection, path, lambda: self._end(session), self._tasks)
        self._sessions[registration.id] = session
        return session

    async def _create(self, registration: BrokerRegistration, previous: Uuid | None) -> _Node | None:
        """Create the node. None if it is there; otherwise the node that has this id."""
        path, data = self._paths.broker(registration.id), _to_bytes(registration)
        while True:
            try:
                await self._connection.call("create", path, data, ephemeral=True)
                return None
            except NodeExistsError:
                node = await self._node(registration.id)
            if node is None:
                continue
            incarnation = node.registration.incarnation
            if incarnation == registration.incarnation and node.session_id == self._connection.session_id:
                return None
            if incarnation != previous:
                return node
            logger.info("replacing the registration of the last start of broker %d", registration.id)
            results = await self._connection.transaction(
                [("delete", path, node.version), ("create", path, data, None, True)]
            )
            if not any(isinstance(result, Exception) for result in results):
                return None

    async def _node(self, broker_id: int, watch: Callable[[object], None] | None = None) -> _Node | None:
        try:
            data, stat = await self._connection.call("get", self._paths.broker(broker_id), watch)
        except NoNodeError:
            return None
        try:
            return _Node.from_bytes(data, stat)
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"the registration of broker {broker_id} in ZooKeeper is damaged") from error

    async def _wait_for_end(self, node: _Node, deadline: float) -> None:
        """Wait until the node is gone. BrokerIdTaken if it stays."""
        broker_id = node.registration.id
        seconds_left = deadline - time.monotonic()
        if node.session_id == self._connection.session_id or seconds_left <= 0:
            raise BrokerIdTaken(_who_has(node))
        logger.warning("%s; waiting up to %.0f s for its session to end", _who_has(node), seconds_left)
        changed = asyncio.Event()
        watch = self._connection.event_setter(changed)
        if await self._connection.until_answered(lambda: self._node(broker_id, watch), seconds_left) is None:
            return
        try:
            async with asyncio.timeout(seconds_left):
                await changed.wait()
        except TimeoutError:
            raise BrokerIdTaken(_who_has(node)) from None

    async def watch(self, watcher: SessionWatcher, within_seconds: float) -> Cancel:
        living = await self._connection.until_answered(self._living, within_seconds)
        # This read may be the first to see a change, which the other watchers must get, too.
        self._send(living)
        self._watchers.append(watcher)
        watcher(living)
        if self._task is None:
            self._task = self._tasks.start(self._run())
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    def end_all(self) -> None:
        for session in list(self._sessions.values()):
            self._end(session)

    def stop_watching(self) -> None:
        self._watchers.clear()

    async def _living(self) -> Mapping[int, BrokerRegistration]:
        """All living brokers; every change from now on sets the event."""
        names = await self._connection.call("get_children", self._paths.brokers, self._watch)
        nodes = await asyncio.gather(*(self._node(int(name)) for name in names))
        return {node.registration.id: node.registration for node in nodes if node is not None}

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                living = await self._connection.until_answered(self._living)
            except StoreError as error:
                if self._connection.is_closed:
                    return
                logger.error("cannot read which brokers are alive: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
                self._changed.set()
            else:
                self._send(living)

    def _send(self, living: Mapping[int, BrokerRegistration]) -> None:
        if living == self._last_sent:
            return
        self._last_sent = living
        for watcher in list(self._watchers):
            try:
                watcher(living)
            except Exception:
                logger.exception("a watcher of the living brokers failed")

    def _end(self, session: ZooKeeperSession) -> None:
        if self._sessions.get(session.registration.id) is session:
            del self._sessions[session.registration.id]
        session.lost.set()
        if session.node is not None:
            session.node.forget()

    async def _close_session(self, session: ZooKeeperSession) -> None:
        self._end(session)
        await self._tasks.run_for_a_while(
            self._remove(session.registration), self._connection.goodbye_seconds
        )

    async def _remove(self, registration: BrokerRegistration) -> None:
        await self._connection.until_answered(lambda: self._delete(registration))

    async def _delete(self, registration: BrokerRegistration) -> None:
        node = await self._node(registration.id)
        if node is not None and node.registration.incarnation == registration.incarnation:
            try:
                await self._connection.call("delete", self._paths.broker(registration.id), node.version)
            except NoNodeError:
                logger.debug("the node of broker %d is gone already", registration.id)


def _who_has(node: _Node) -> str:
    registration = node.registration
    addresses = ", ".join(f"{listener.host}:{listener.port}" for listener in registration.listeners)
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(node.since_ms / 1000))
    return f"broker id {registration.id} is taken by the broker at {addresses}, registered since {since}"
