"""Which store a broker opens, and what its metadata directory remembers."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.support.zookeeper import zookeeper

from barnabas.ids import random_uuid
from barnabas.metadata.embedded import EmbeddedStore
from barnabas.metadata.opening import open_store
from barnabas.metadata.records import Listener
from barnabas.metadata.store import BrokerRegistration, StoreError
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings
from barnabas.testing import Broker


def settings_of(tmp_path: Path) -> ZooKeeperSettings:
    path = f"{tmp_path.parent.name}-{tmp_path.name}"
    return ZooKeeperSettings(f"{zookeeper().connect}/{path}", session_timeout_ms=10_000)


def test_a_broker_without_zookeeper_has_the_embedded_store(tmp_path: Path) -> None:
    async def story() -> None:
        opened = await open_store(tmp_path, None, incarnation=random_uuid())
        assert isinstance(opened.store, EmbeddedStore)
        assert opened.previous_incarnation is None
        await opened.store.close()

    asyncio.run(story())


def test_the_directory_of_a_broker_of_a_cluster_is_refused_without_zookeeper(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)

    async def story() -> None:
        opened = await open_store(tmp_path / "d", settings, incarnation=random_uuid())
        with pytest.raises(StoreError, match="another broker is using the metadata"):
            await open_store(tmp_path / "d", settings, incarnation=random_uuid())
        await opened.store.close()
        with pytest.raises(StoreError, match=f"belongs to the cluster in ZooKeeper at {settings.connect}"):
            await open_store(tmp_path / "d", None, incarnation=random_uuid())

    asyncio.run(story())


def test_a_restart_replaces_the_registration_of_the_start_before(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    listeners = (Listener("PLAINTEXT", "127.0.0.1", 9092),)

    async def story() -> None:
        first, second = random_uuid(), random_uuid()
        crashed = await open_store(tmp_path / "d", settings, incarnation=first)
        lost = await crashed.store.register_broker(BrokerRegistration(1, first, listeners))
        # As after kill -9: the session lives on in ZooKeeper, the lock of the directory is free.
        crashed.store._closing.pop()()  # type: ignore[attr-defined]
        opened = await open_store(tmp_path / "d", settings, incarnation=second)
        assert opened.previous_incarnation == first
        session = await opened.store.register_broker(
            BrokerRegistration(1, second, listeners, previous_incarnation=first)
        )
        async with asyncio.timeout(5):
            await lost.lost.wait()
        await crashed.store.close()
        assert not session.lost.is_set()
        await opened.store.close()

    asyncio.run(story())


def test_a_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)

    async def story() -> None:
        opened = await open_store(tmp_path / "a", settings, incarnation=random_uuid())
        cluster_id = opened.store.cluster_id
        await opened.store.close()
        opened = await open_store(tmp_path / "a", settings, incarnation=random_uuid(), cluster_id=cluster_id)
        await opened.store.close()
        with pytest.raises(StoreError, match=f"is {cluster_id}, but the data directory belongs to cluster X"):
            await open_store(tmp_path / "a", settings, incarnation=random_uuid(), cluster_id="X")
        elsewhere = ZooKeeperSettings(settings.connect + "-elsewhere")
        with pytest.raises(StoreError, match="there is no cluster in ZooKeeper at"):
            await open_store(tmp_path / "b", elsewhere, incarnation=random_uuid(), cluster_id=cluster_id)

    asyncio.run(story())


def test_the_metrics_show_the_connection_to_zookeeper(tmp_path: Path) -> None:
    settings = {"zookeeper.connect": settings_of(tmp_path).connect, "barnabas.metrics.port": "0"}
    with Broker(settings, data_dir=tmp_path / "d", subprocess=True) as broker:
        [port] = re.findall(r"http://127\.0\.0\.1:(\d+)/metrics", broker.output())
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
    assert "barnabas_zookeeper_connected 1.0" in lines or "barnabas_zookeeper_connected 1" in lines
    names = ("disconnects", "expires")
    for name in names:
        assert any(line.startswith(f"kafka_server_sessionexpirelistener_zookeeper{name}") for line in lines)


def test_kazoo_is_not_imported_by_a_broker_that_runs_alone() -> None:
    program = (
        "import sys, barnabas.broker.broker, barnabas.cli.start; "
        "sys.exit(any('kazoo' in name for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
