"""A controller on a real embedded store, for the tests of this package."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from barnabas.config.values import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import random_uuid
from barnabas.metadata.brokers import Heartbeat, HeartbeatAnswer
from barnabas.metadata.configs import ConfigRules
from barnabas.metadata.controller import Controller, ControllerSettings
from barnabas.metadata.embedded import EmbeddedStore
from barnabas.metadata.follower import Follower
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import Listener
from barnabas.metadata.store import BrokerRegistration


class Stage:
    """An elected controller without a candidacy; brokers are registered by hand."""

    def __init__(self, store: EmbeddedStore, config: BrokerConfig, settings: ControllerSettings) -> None:
        self.store = store
        self.follower = Follower(store)
        self.controller = Controller(store, self.follower, ConfigRules(lambda: config), settings)

    @property
    def image(self) -> MetadataImage:
        return self.follower.image

    async def start(self) -> None:
        await self.follower.start()
        self.controller.lead(await self.store.campaign(1))

    async def brokers(self, *ids: int, rack: str | None = None) -> dict[int, int]:
        """Start brokers after a clean stop; their epochs by id."""
        return {number: await self.broker(self.registration(number, rack)) for number in ids}

    async def broker(self, registration: BrokerRegistration) -> int:
        """Register a broker and unfence it; its epoch."""
        epoch = await self.controller.register_broker(registration)
        await self.beat(registration.id)
        return epoch

    async def beat(self, number: int, **fields: bool) -> HeartbeatAnswer:
        epoch = self.image.brokers[number].epoch
        return await self.controller.heartbeat(Heartbeat(number, epoch, self.image.offset, **fields))

    def registration(self, number: int, rack: str | None = None) -> BrokerRegistration:
        """A new start of a broker; the last one ended cleanly."""
        listeners = (Listener("PLAINTEXT", "127.0.0.1", 9092 + number),)
        old = self.image.brokers.get(number)
        return BrokerRegistration(number, random_uuid(), listeners, rack, -1 if old is None else old.epoch)

    def living(self, number: int) -> BrokerRegistration:
        """The session of a broker that is registered."""
        broker = self.image.brokers[number]
        return BrokerRegistration(number, broker.incarnation, broker.listeners, broker.rack)

    async def stop(self) -> None:
        await self.controller.step_down()
        self.follower.stop()
        await self.store.close()


Story = Callable[[Stage], Coroutine[Any, Any, None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., None]:
    """Run a test's coroutine on a stage. A second run in the same test finds the state of the first."""

    def run(
        story: Story,
        *,
        settings: ControllerSettings | None = None,
        properties: dict[str, str] | None = None,
        snapshot_bytes_min: int = 1 << 20,
    ) -> None:
        async def staged() -> None:
            store = await EmbeddedStore.open(tmp_path / "m", snapshot_bytes_min=snapshot_bytes_min)
            config = BrokerConfig({"node.id": "1", **(properties or {})})
            stage = Stage(store, config, settings or ControllerSettings())
            await stage.start()
            try:
                await story(stage)
            finally:
                await stage.stop()

        asyncio.run(staged())

    return run


@pytest.fixture
def code_of() -> Callable[[object], ErrorCode]:
    """The error code of one item's answer; NONE for a value."""

    def code(answer: object) -> ErrorCode:
        return answer.code if isinstance(answer, KafkaError) else ErrorCode.NONE

    return code
