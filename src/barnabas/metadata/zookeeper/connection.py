"""A connection to ZooKeeper for one event loop: kazoo's calls as awaitables, its events on the loop.

kazoo runs threads of its own. They only post to the loop, and touch nothing else of the store.

A session survives a lost connection: while kazoo connects again, calls wait. When ZooKeeper has expired the
session, everything that belonged to it (registrations, candidacies) is gone for good. kazoo then begins a
new session, `generation` rises by one, and the lost-session callbacks are called."""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.protocol.states import KazooState

from barnabas.metadata.store import StoreError, StoreUnavailable, StoreUnreachable
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings

__all__ = ["BadVersionError", "Connection", "Disconnected", "NoNodeError", "NodeExistsError"]

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

# kazoo's own warnings repeat for every attempt to connect; this module logs each change of state once.
_kazoo_logger = logging.getLogger("barnabas.metadata.zookeeper.kazoo")
_kazoo_logger.setLevel(logging.ERROR)

# A new attempt to connect comes after 0.1 s, then later and later, but at least once per second.
_RECONNECT = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0}
# A call that fails while kazoo has not reported the lost connection yet is made again after this time.
_AFTER_LOSS_SECONDS = 0.05
_CLOSE_SECONDS_MAX = 3.0
_GOODBYE_SECONDS_MAX = 2.0
_DISCONNECTED = (ConnectionLoss, ConnectionClosedError, SessionExpiredError, OperationTimeoutError)


class Disconnected(Exception):
    """The connection was lost before the answer came: a change may have happened or not."""


class Connection:
    def __init__(self, settings: ZooKeeperSettings) -> None:
        self.settings = settings
        self.generation = 0
        # That of the last connection. It stays while the connection is lost: the session may still live.
        self.session_id: int | None = None
        self.disconnects = 0
        self._loop = asyncio.get_running_loop()
        self._connected = asyncio.Event()
        self._closed = False
        self._away_since: float | None = time.time()
        self._lost_callbacks: list[Callable[[], None]] = []
        secured = {} if settings.security is None else settings.security.client_options()
        self._handler = secured.get("handler")
        self._client = KazooClient(
            hosts=settings.servers,
            timeout=settings.session_timeout_seconds,
            connection_retry=_RECONNECT,
            logger=_kazoo_logger,
            **secured,
        )

    async def open(self) -> None:
        """Connect; StoreUnavailable if ZooKeeper cannot be reached in time."""
        self._client.add_listener(lambda state: self.post(self._take_state, state, self._client.client_id))
        self._client.start_async()
        try:
            async with asyncio.timeout(self.settings.connection_timeout_seconds):
                await self._connected.wait()
        except TimeoutError:
            await self.close()
            raise StoreUnreachable(self._unreachable()) from None
        except BaseException:
            await self.close()
            raise

    def _unreachable(self) -> str:
        seconds = self.settings.connection_timeout_seconds
        start = f"cannot reach ZooKeeper at {self.settings.servers} within {seconds:g} s"
        why = getattr(self._handler, "failure", None)
        if why is not None:
            return f"{start} ({why}): check its certificate and the settings zookeeper.ssl.*"
        return f"{start}: check that it is running and that zookeeper.connect is right"

    @property
    def is_connected(self) -> bool:
        return self._connected.is_set() and not self._closed

    @property
    def goodbye_seconds(self) -> float:
        """How long to wait for the removal of a node that ends with the session anyway."""
        return _GOODBYE_SECONDS_MAX if self.is_connected else 0.0

    @property
    def is_closed(self) -> bool:
        return self._closed

    def when_session_lost(self, callback: Callable[[], None]) -> None:
        self._lost_callbacks.append(callback)

    def post(self, callback: Callable[..., None], *arguments: object) -> None:
        """Run a callback on the loop; any thread may call this."""
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            # The loop is closed. Nobody waits for this event any more.
            logger.debug("an event of ZooKeeper came after the end of the event loop")

    def event_setter(self, event: asyncio.Event) -> Callable[[object], None]:
        """A watch for kazoo that sets the event."""
        return lambda _: self.post(event.set)

    async def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of kazoo, such as "get". Raises Disconnected, or the error that ZooKeeper answers."""
        self._check_open()
        return await self._answer(getattr(self._client, f"{name}_async")(*arguments, **options))

    async def transaction(self, operations: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Do all operations or none; each is a method of kazoo's transactions with its arguments.

        The answer has a result per operation. If one fails, its result is the error."""
        self._check_open()
        request = self._client.transaction()
        for name, *arguments in operations:
            getattr(request, name)(*arguments)
        results: list[Any] = await self._answer(request.commit_async())
        return results

    @staticmethod
    def is_cause(result: object) -> bool:
        """Whether this operation made a transaction fail; the others have failed only with it."""
        return isinstance(result, Exception) and not isinstance(
            result, RolledBackError | RuntimeInconsistency
        )

    async def until_answered(
        self, work: Callable[[], Awaitable[Result]], within_seconds: float | None = None
    ) -> Result:
        """Do the work, and again after every lost connection; it must find out what it did before.

        Raises StoreUnreachable if there is no answer in time, StoreUnavailable when the store is closed, and
        StoreError if the answer is an error that the work does not expect."""
        try:
            async with asyncio.timeout(within_seconds):
                while True:
                    await self._connected.wait()
                    self._check_open()
                    try:
                        return await work()
                    except Disconnected:
                        await asyncio.sleep(_AFTER_LOSS_SECONDS)
        except TimeoutError:
            raise StoreUnreachable(self.trouble(within_seconds or 0.0)) from None
        except KazooException as error:
            raise StoreError(self.unexpected(error)) from error

    def unexpected(self, error: Exception) -> str:
        """One sentence about an answer that the nodes of a healthy cluster cannot give."""
        if isinstance(error, NoAuthError | AuthFailedError):
            return (
                f"ZooKeeper at {self.settings.connect} does not let this broker use the nodes of the cluster:"
                " set barnabas.zookeeper.digest (or the certificate) to that of the broker that created them"
            )
        return (
            f"ZooKeeper at {self.settings.connect} answered {type(error).__name__}: check that nobody has "
            "changed or deleted the nodes of the cluster"
        )

    def trouble(self, waited_seconds: float) -> str:
        """One sentence that says where ZooKeeper is, and since when it does not answer."""
        servers = self.settings.servers
        if self._away_since is None:
            return f"ZooKeeper at {servers} did not answer within {waited_seconds:.0f} s"
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self._away_since))
        return f"ZooKeeper at {servers} is not reachable since {since}"

    async def close(self) -> None:
        """End the session and the threads. If ZooKeeper does not answer, kazoo ends in the background."""
        if self._closed:
            return
        self._closed = True
        self._connected.set()
        stopped = asyncio.Event()
        threading.Thread(target=self._stop_client, args=(stopped,), daemon=True).start()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS_MAX):
                await stopped.wait()
        except TimeoutError:
            logger.warning(
                "ZooKeeper at %s does not answer; its session will end by its timeout", self.settings.servers
            )

    def _stop_client(self, stopped: asyncio.Event) -> None:
        try:
            self._client.stop()
            self._client.close()
        finally:
            self.post(stopped.set)

    async def _answer(self, pending: Any) -> Any:
        answer: asyncio.Future[Any] = self._loop.create_future()
        pending.rawlink(lambda done: self.post(_settle, answer, done))
        try:
            return await answer
        except _DISCONNECTED as error:
            raise Disconnected(str(error)) from error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the metadata store is closed")

    def _take_state(self, state: str, identity: tuple[int, bytes] | None) -> None:
        if self._closed:
            return
        servers = self.settings.servers
        if state == KazooState.CONNECTED:
            away = 0.0 if self._away_since is None else time.time() - self._away_since
            logger.info("connected to ZooKeeper at %s after %.1f s", servers, away)
            self._away_since = None
            if identity is not None:
                self.session_id = identity[0]
            self._connected.set()
            return
        self.disconnects += self._connected.is_set()
        self._connected.clear()
        self._away_since = self._away_since or time.time()
        if state == KazooState.LOST:
            logger.warning("the session with ZooKeeper at %s has expired", servers)
            self.generation += 1
            for callback in self._lost_callbacks:
                callback()
        else:
            logger.warning("lost the connection to ZooKeeper at %s; the session may still live", servers)


def _settle(answer: "asyncio.Future[Any]", done: Any) -> None:
    if answer.done():
        return
    if done.exception is None:
        answer.set_result(done.value)
    elif isinstance(done.exception, Exception):
        answer.set_exception(done.exception)
    else:
        answer.set_exception(StoreError(f"ZooKeeper answered {done.exception!r}"))
