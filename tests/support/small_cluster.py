"""Several real brokers in one event loop, with real sockets and logs, on one embedded store.

The store stands for ZooKeeper, so that stories of a few brokers need no other process.

    async def story(cluster):
        await cluster.start(1, 2)
        ...

    run_cluster(tmp_path, story)
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from barnabas.broker.broker import Broker
from barnabas.config.values import BrokerConfig
from barnabas.errors import KafkaError, error_of
from barnabas.metadata.embedded import EmbeddedStore
from barnabas.metadata.opening import OpenedStore
from barnabas.net.broker_connection import BrokerConnection, ConnectionSettings
from barnabas.wire.message import Message
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

STORY_SECONDS_MAX = 30
CREATE_TOPICS = 19


class SmallCluster:
    def __init__(self, directory: Path, store: EmbeddedStore) -> None:
        self.store = store
        self.brokers: dict[int, Broker] = {}
        self._directory = directory
        self._connections: list[BrokerConnection] = []

    async def start(self, *broker_ids: int, **overrides: str) -> None:
        for broker_id in broker_ids:
            self.brokers[broker_id] = Broker(self._config(broker_id, overrides), open_store=self._open_store)
            await self.brokers[broker_id].start()
        for broker in self.brokers.values():
            await broker.metadata.follower.until(
                lambda image: all(image.alive(broker_id) for broker_id in self.brokers)
            )

    async def stop(self, broker_id: int) -> None:
        await self.brokers.pop(broker_id).stop()

    async def client(self, broker_id: int, software_name: str = "a-test") -> BrokerConnection:
        """A connection to a broker, as a client has one."""
        settings = ConnectionSettings(client_id="client", software_name=software_name)
        port = self.brokers[broker_id].endpoints[0].port
        connection = await BrokerConnection.open("127.0.0.1", port, settings)
        self._connections.append(connection)
        return connection

    async def ask(self, broker_id: int, api_key: int, message: Message) -> Any:
        return await (await self.client(broker_id, "barnabas-broker")).send(api_key, message)

    async def create_topic(self, at: int, name: str, replicas: int = 1, partitions: int = 1) -> None:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
        answer = await self.ask(at, CREATE_TOPICS, CreateTopicsRequest(topics=[topic], timeout_ms=20_000))
        for result in answer.topics:
            if result.error_code:
                raise KafkaError(error_of(result.error_code), result.error_message)

    async def close(self) -> None:
        for connection in self._connections:
            connection.close()
        for broker_id in list(self.brokers):
            await self.stop(broker_id)
        await EmbeddedStore.close(self.store)

    def _config(self, broker_id: int, overrides: dict[str, str]) -> BrokerConfig:
        return BrokerConfig(
            {
                "node.id": str(broker_id),
                "log.dirs": str(self._directory / str(broker_id)),
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "zookeeper.connect": "unused:2181",
                "log.cleaner.enable": "false",
                **{name.replace("_", "."): value for name, value in overrides.items()},
            }
        )

    async def _open_store(self, directory: Path, zookeeper: object, **_: object) -> OpenedStore:
        await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
        return OpenedStore(_Shared(self.store))  # type: ignore[arg-type]


class _Shared:
    """The store, without the end of it: a broker that stops does not close it for the others."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def close(self) -> None:
        """Called by each broker."""


def run_cluster(directory: Path, story: Callable[[SmallCluster], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        cluster = SmallCluster(directory, await EmbeddedStore.open(directory / "store"))
        try:
            await story(cluster)
        finally:
            await cluster.close()

    asyncio.run(asyncio.wait_for(play(), STORY_SECONDS_MAX))


async def eventually(condition: Callable[[], bool] | Callable[[], Awaitable[bool]]) -> None:
    """Wait until the condition is true."""
    while True:
        holds = condition()
        if await holds if isinstance(holds, Awaitable) else holds:
            return
        await asyncio.sleep(0.02)
