"""A broker's part in the metadata: its session, its image, and its candidacy for controller, in one object.

The broker needs only the image and the methods of the controller besides it. It works with any MetadataStore.
A broker goes through these steps, so that it is never the controller, nor unfenced, before its logs are open:

    node = await MetadataNode.open(store, broker_id, rules)   # there is an image
    await node.register(registration)                         # the broker id is taken
    ...                                                       # open and recover the logs
    await node.join()                                         # there is a broker epoch

`start` does all of them at once."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from barnabas.metadata.candidacy import Candidacy
from barnabas.metadata.configs import ConfigRules
from barnabas.metadata.controller import Controller, ControllerSettings
from barnabas.metadata.follower import Follower, ImageListener
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import (
    BrokerRegistration,
    Cancel,
    ConnectionState,
    MetadataStore,
    Session,
    StoreError,
)

logger = logging.getLogger(__name__)

NO_EPOCH = -1
# After this time the log says what a start waits for.
PATIENCE_SECONDS = 5.0


class SessionLost(StoreError):
    """The session ended while the broker waited for something that needs it; it has to register again."""


class MetadataNode:
    def __init__(
        self,
        store: MetadataStore,
        broker_id: int,
        rules: ConfigRules,
        settings: ControllerSettings | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.follower = Follower(store)
        self.controller = Controller(store, self.follower, rules, settings)
        self.registration: BrokerRegistration | None = None
        self._store = store
        self._session: Session | None = None
        self._candidacy = Candidacy(store, self.controller, broker_id)
        self._broker_epoch = NO_EPOCH

    @classmethod
    async def open(
        cls,
        store: MetadataStore,
        broker_id: int,
        rules: ConfigRules,
        settings: ControllerSettings | None = None,
    ) -> "MetadataNode":
        """Load the metadata and follow them."""
        node = cls(store, broker_id, rules, settings)
        await node.follower.start()
        return node

    @classmethod
    async def start(
        cls,
        store: MetadataStore,
        registration: BrokerRegistration,
        rules: ConfigRules,
        settings: ControllerSettings | None = None,
    ) -> "MetadataNode":
        """Join the cluster; returns when the image has this start of the broker. It is fenced until a
        heartbeat unfences it."""
        node = await cls.open(store, registration.id, rules, settings)
        try:
            await node.register(registration)
            await node.join()
        except BaseException:
            await node.leave()
            raise
        return node

    @property
    def image(self) -> MetadataImage:
        return self.follower.image

    @property
    def cluster_id(self) -> str:
        return self._store.cluster_id

    @property
    def connection_state(self) -> ConnectionState | None:
        return self._store.connection_state

    @property
    def broker_epoch(self) -> int:
        """The epoch of the newest registration that the controller has accepted."""
        registration = self.registration
        if registration is not None and _is_registered(self.image, registration):
            self._broker_epoch = self.image.brokers[self.broker_id].epoch
        return self._broker_epoch

    @property
    def session_lost(self) -> asyncio.Event:
        assert self._session is not None
        return self._session.lost

    async def catch_up(self) -> None:
        """Wait until the image has everything that was committed before this call. StoreUnavailable if the
        store does not answer."""
        await self.follower.reached(await self._store.newest_end())

    def listen(self, listener: ImageListener) -> Cancel:
        return self.follower.listen(listener)

    async def register(self, registration: BrokerRegistration) -> None:
        """Begin a session, the first one or the next one after a lost one. BrokerIdTaken if another process
        has this broker id."""
        self._session = await self._store.register_broker(registration)
        self.registration = registration

    async def join(self, *, fails_with_controller: bool = True) -> None:
        """Be a candidate for controller, and wait until the controller has registered this broker.

        `fails_with_controller`: if this broker becomes the controller and fails, so does this call. Without
        it, the candidacy goes on, and another broker may be the controller."""
        self._candidacy.start()
        waiting = asyncio.ensure_future(self.registered())
        try:
            first: list[asyncio.Future[Any]] = [waiting]
            if fails_with_controller:
                first.append(self._candidacy.failure)
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise self._candidacy.failure.result()
            waiting.result()
        finally:
            waiting.cancel()

    async def registered(self) -> int:
        """Wait until the image has the newest registration; returns the broker epoch. SessionLost if the
        session ends before: then no controller will see this registration."""
        registration = self.registration
        assert registration is not None
        reminder = asyncio.get_running_loop().call_later(
            PATIENCE_SECONDS, logger.info, "waiting for the controller to register this broker"
        )
        try:
            await self.until(lambda image: _is_registered(image, registration))
        finally:
            reminder.cancel()
        return self.broker_epoch

    async def until(self, predicate: Callable[[MetadataImage], bool]) -> None:
        """Wait for an image for which `predicate` is true; SessionLost if the session ends before."""
        waiting = asyncio.ensure_future(self.follower.until(predicate))
        lost = asyncio.ensure_future(self.session_lost.wait())
        try:
            await asyncio.wait((waiting, lost), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise SessionLost(f"broker {self.broker_id} has lost its session with the metadata store")
        finally:
            waiting.cancel()
            lost.cancel()

    async def depose_controller(self, epoch: int) -> None:
        """End the leadership of a controller that cannot do its work."""
        await self._store.depose(epoch)

    async def leave(self) -> None:
        """Leave the cluster; the store stays open."""
        # Stop the candidacy before the session ends: otherwise this broker, if it is the controller, would
        # fence itself.
        await self._candidacy.stop()
        if self._session is not None:
            await self._session.close()
        self.follower.stop()

    async def close(self) -> None:
        """Leave the cluster and close the store."""
        await self.leave()
        await self._store.close()


def _is_registered(image: MetadataImage, registration: BrokerRegistration) -> bool:
    broker = image.brokers.get(registration.id)
    return broker is not None and broker.incarnation == registration.incarnation
