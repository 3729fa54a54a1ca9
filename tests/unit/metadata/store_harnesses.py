"""The metadata stores whose contract is tested, and what the tests share. A new store adds its harness.

A harness opens a store on the same data again and again, and can do from outside what a broken network does:
end a session, take the leadership away."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.support.zookeeper import expire_session, zookeeper

from barnabas.metadata.embedded import EmbeddedStore
from barnabas.metadata.local import LocalSession
from barnabas.metadata.records import FeatureRecord, Listener, MetadataRecord
from barnabas.metadata.store import BrokerRegistration, MetadataStore, Session, Update
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings
from barnabas.metadata.zookeeper.store import ZooKeeperStore


class StoreHarness(Protocol):
    def __init__(self, directory: Path) -> None: ...

    async def open(self) -> MetadataStore: ...

    async def expire(self, store: MetadataStore, session: Session) -> None: ...

    async def end_leadership(self, store: MetadataStore) -> None: ...


class EmbeddedHarness:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def open(self) -> MetadataStore:
        return await EmbeddedStore.open(self._directory / "metadata")

    async def expire(self, store: MetadataStore, session: Session) -> None:
        assert isinstance(store, EmbeddedStore) and isinstance(session, LocalSession)
        store.sessions.end(session)

    async def end_leadership(self, store: MetadataStore) -> None:
        assert isinstance(store, EmbeddedStore)
        store.election.end_leadership()


class ZooKeeperHarness:
    """Every test has its own path in one ZooKeeper. A session ends when another connection closes it."""

    def __init__(self, directory: Path) -> None:
        path = f"{directory.parent.name}-{directory.name}"
        self._settings = ZooKeeperSettings(f"{zookeeper().connect}/{path}", session_timeout_ms=10_000)

    async def open(self) -> MetadataStore:
        return await ZooKeeperStore.open(self._settings)

    async def expire(self, store: MetadataStore, session: Session) -> None:
        assert isinstance(store, ZooKeeperStore)
        await expire_session(store)

    async def end_leadership(self, store: MetadataStore) -> None:
        assert isinstance(store, ZooKeeperStore)
        await expire_session(store)


STORES: list[type[StoreHarness]] = [EmbeddedHarness, ZooKeeperHarness]


def features(*levels: int) -> tuple[MetadataRecord, ...]:
    return tuple(FeatureRecord(f"feature-{level}", level) for level in levels)


def registration(broker_id: int, incarnation: int = 1) -> BrokerRegistration:
    listeners = (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    return BrokerRegistration(broker_id, incarnation.to_bytes(16, "big"), listeners)


class Watching:
    """Collects what a watcher gets, call by call."""

    def __init__(self) -> None:
        self.calls: list[list[Update]] = []

    def __call__(self, updates: Sequence[Update]) -> None:
        self.calls.append(list(updates))

    @property
    def updates(self) -> list[Update]:
        return [update for call in self.calls for update in call]


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until the condition is true: a store may notify its watchers some time after the write."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    pytest.fail("what was waited for did not come")


def with_store(harness: StoreHarness, story: Callable[[MetadataStore], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        store = await harness.open()
        try:
            await story(store)
        finally:
            await store.close()

    asyncio.run(run())
