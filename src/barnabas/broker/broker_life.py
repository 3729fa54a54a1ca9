"""The life of this broker in its cluster: unfencing, a lost session, controlled shutdown.

A broker that registers is fenced: it may not lead, nor be in an ISR. When its logs are open and it serves, it
asks the controller by BrokerHeartbeat to be unfenced. Its session with the store shows that it is alive, so
there are no periodic heartbeats.

A lost session ends this registration: the controller fences the broker and moves its leaderships. The broker
registers again, with a new incarnation, and asks again to be unfenced. Until the metadata have reached it, it
may act on leaderships that it no longer has; the leader epochs make that harmless. A connection to the store
that is only interrupted ends nothing.

Only for the event loop."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.ids import random_uuid
from barnabas.metadata.files import RealFiles
from barnabas.metadata.node import SessionLost
from barnabas.metadata.opening import Membership, write_membership
from barnabas.metadata.store import BrokerRegistration, StoreError
from barnabas.wire.messages import broker_heartbeat
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.metadata.image import MetadataImage

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS_MAX = 10.0
RETRY_SECONDS = 0.1
RETRY_SECONDS_MAX = 2.0
# A stop does not wait longer than this for others to take over the leaderships.
SHUTDOWN_SECONDS_MAX = 30.0
# A controlled shutdown gives up some leaderships with each heartbeat. In between, the followers of these
# partitions have to find their new leaders.
PORTION_SECONDS = 0.03


class BrokerLife:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._watching: asyncio.Task[None] | None = None
        # Read by /metrics.
        self.sessions_lost = 0

    async def join(self) -> None:
        """Be a candidate for controller, and wait until the controller has registered this broker."""
        try:
            await self._broker.metadata.join(fails_with_controller=not self._broker.is_clustered)
        except SessionLost:
            await self._register_again()

    async def unfence(self) -> None:
        """Ask the controller until it has unfenced this broker, and the local image has it."""
        node = self._broker.metadata
        pause = RETRY_SECONDS
        while self._is_fenced(node.image):
            try:
                if node.session_lost.is_set():
                    await self._register_again()
                answer = await self._heartbeat()
                if not answer.is_fenced:
                    await node.until(lambda image: not self._is_fenced(image))
                    return
            except KafkaError as error:
                logger.warning("this broker is still fenced: %s", error.message)
            except SessionLost as error:
                logger.warning("this broker is still fenced: %s", error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY_SECONDS_MAX)

    def start(self) -> None:
        """Watch the session, and the fence that the controller may set."""
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None

    async def shut_down(self) -> None:
        """Give the leaderships to other brokers before this one stops. Returns when that is done, or was not
        possible in time."""
        is_started = self._watching is not None
        await self.stop()
        is_enabled = self._broker.config["controlled.shutdown.enable"]
        if not (is_started and is_enabled and self._has_living_peers()):
            return
        try:
            async with asyncio.timeout(SHUTDOWN_SECONDS_MAX):
                answer = await self._heartbeat(want_shut_down=True)
                while not answer.should_shut_down:
                    await asyncio.sleep(PORTION_SECONDS)
                    answer = await self._heartbeat(want_shut_down=True)
        except (TimeoutError, KafkaError) as error:
            logger.warning("stopping without a controlled shutdown: %s", error or "it took too long")

    async def _watch(self) -> None:
        node = self._broker.metadata
        while True:
            lost = asyncio.ensure_future(node.session_lost.wait())
            fenced = asyncio.ensure_future(node.follower.until(self._is_fenced))
            try:
                await asyncio.wait((lost, fenced), return_when=asyncio.FIRST_COMPLETED)
            finally:
                lost.cancel()
                fenced.cancel()
            if node.session_lost.is_set():
                await self._register_again()
            await self.unfence()
            logger.info("broker %d takes part in the cluster again", self._broker.id)

    async def _register_again(self) -> None:
        """Begin sessions, until one of them lasts until the controller has seen it."""
        self.sessions_lost += 1
        logger.warning("the session of broker %d is lost; it registers again", self._broker.id)
        pause = RETRY_SECONDS
        while True:
            try:
                epoch = await self._begin_session()
                break
            except StoreError as error:
                logger.warning("broker %d cannot register: %s", self._broker.id, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY_SECONDS_MAX)
        logger.info("broker %d is registered again, with epoch %d", self._broker.id, epoch)

    async def _begin_session(self) -> int:
        node = self._broker.metadata
        assert node.registration is not None
        # The logs are intact, so the new incarnation follows a clean end of the old one.
        registration = replace(
            node.registration,
            incarnation=random_uuid(),
            previous_epoch=node.broker_epoch,
            previous_incarnation=node.registration.incarnation,
        )
        await node.register(registration)
        await self._remember(registration)
        return await node.registered()

    async def _remember(self, registration: BrokerRegistration) -> None:
        """Write down the incarnation, with which a restart after a crash replaces this registration."""
        zookeeper = self._broker.config["zookeeper.connect"]
        if zookeeper is None:
            return
        membership = Membership(zookeeper, registration.incarnation)
        directory = self._broker.metadata_directory
        try:
            await asyncio.to_thread(write_membership, RealFiles(), directory, membership)
        except StoreError as error:
            # A restart then waits until this session ends.
            logger.warning("%s", error)

    async def _heartbeat(self, *, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        node = self._broker.metadata
        request = BrokerHeartbeatRequest(
            broker_id=self._broker.id,
            broker_epoch=node.broker_epoch,
            current_metadata_offset=node.image.offset,
            want_shut_down=want_shut_down,
        )
        answer: BrokerHeartbeatResponse = await self._broker.controller_channel.send(
            broker_heartbeat.API_KEY, request, within_seconds=HEARTBEAT_SECONDS_MAX
        )
        if answer.error_code != ErrorCode.NONE:
            raise KafkaError(error_of(answer.error_code))
        return answer

    @property
    def is_fenced(self) -> bool:
        return self._is_fenced(self._broker.image)

    def _is_fenced(self, image: MetadataImage) -> bool:
        broker = image.brokers.get(self._broker.id)
        return broker is None or broker.fenced

    def _has_living_peers(self) -> bool:
        image = self._broker.image
        return any(image.alive(broker_id) for broker_id in image.brokers if broker_id != self._broker.id)
