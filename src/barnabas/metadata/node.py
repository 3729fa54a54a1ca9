"""A broker's part in the metadata: its session, its image, and its candidacy for controller, in one object.

The broker starts one, and needs only the image and the methods of the controller besides it. It works with
any MetadataStore."""

import asyncio
from dataclasses import dataclass
from typing import Any

from barnabas.metadata.candidacy import Candidacy
from barnabas.metadata.configs import ConfigRules
from barnabas.metadata.controller import Controller, ControllerSettings
from barnabas.metadata.follower import Follower, ImageListener
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import BrokerRegistration, Cancel, MetadataStore, Session


@dataclass(slots=True)
class MetadataNode:
    """Create it with `start`. `broker_epoch` is the epoch of this start of the broker."""

    broker_id: int
    broker_epoch: int
    controller: Controller
    follower: Follower
    _store: MetadataStore
    _session: Session
    _candidacy: Candidacy

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
        follower = Follower(store)
        await follower.start()
        controller = Controller(store, follower, rules, settings)
        # The session comes first: the controller fences a registered broker that has no session.
        try:
            session = await store.register_broker(registration)
        except BaseException:
            follower.stop()
            raise
        candidacy = Candidacy(store, controller, registration.id)
        candidacy.start()
        try:
            epoch = await _registered_epoch(follower, candidacy, registration)
        except BaseException:
            await _leave(candidacy, session, follower)
            raise
        return cls(registration.id, epoch, controller, follower, store, session, candidacy)

    @property
    def image(self) -> MetadataImage:
        return self.follower.image

    @property
    def cluster_id(self) -> str:
        return self._store.cluster_id

    @property
    def session_lost(self) -> asyncio.Event:
        return self._session.lost

    def listen(self, listener: ImageListener) -> Cancel:
        return self.follower.listen(listener)

    async def close(self) -> None:
        """Leave the cluster and close the store."""
        await _leave(self._candidacy, self._session, self.follower)
        await self._store.close()


async def _leave(candidacy: Candidacy, session: Session, follower: Follower) -> None:
    # Stop the candidacy before the session ends; otherwise this broker as the controller would fence itself.
    await candidacy.stop()
    await session.close()
    follower.stop()


async def _registered_epoch(
    follower: Follower, candidacy: Candidacy, registration: BrokerRegistration
) -> int:
    def registered(image: MetadataImage) -> bool:
        broker = image.brokers.get(registration.id)
        return broker is not None and broker.incarnation == registration.incarnation

    waiting = asyncio.ensure_future(follower.until(registered))
    try:
        first: list[asyncio.Future[Any]] = [waiting, candidacy.failure]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            raise candidacy.failure.result()
        return waiting.result().brokers[registration.id].epoch
    finally:
        waiting.cancel()
