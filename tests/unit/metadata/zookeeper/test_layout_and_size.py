"""What the ZooKeeper store finds below a path, and how it stores changes that are too large for a node."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.support.zookeeper import zookeeper

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import ConfigRecord, FeatureRecord, MetadataRecord
from barnabas.metadata.store import BrokerRegistration, RecordBatch, Snapshot, StoreError
from barnabas.metadata.zookeeper import trimming
from barnabas.metadata.zookeeper.connection import Connection
from barnabas.metadata.zookeeper.documents import (
    PART_BYTES_MAX,
    DamagedDocument,
    decode_append,
    decode_snapshot,
    encode_append,
    encode_snapshot,
    split,
)
from barnabas.metadata.zookeeper.layout import Staged
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings
from barnabas.metadata.zookeeper.store import ZooKeeperStore


def new_settings(snapshot_bytes: int = 20 << 20) -> ZooKeeperSettings:
    connect = f"{zookeeper().connect}/unit/{secrets.token_hex(4)}"
    return ZooKeeperSettings(connect, 10_000, snapshot_bytes=snapshot_bytes)


def large_batch(records: int = 60) -> tuple[MetadataRecord, ...]:
    """Records that do not compress, larger than a node together."""
    return tuple(
        ConfigRecord(2, f"topic-{number}", "key", secrets.token_hex(20_000)) for number in range(records)
    )


async def names_below(connection: Connection, path: str) -> list[str]:
    names: list[str] = await connection.call("get_children", connection.settings.chroot + path)
    return names


def run(story: Callable[[ZooKeeperStore], Coroutine[Any, Any, None]], settings: ZooKeeperSettings) -> None:
    async def whole() -> None:
        store = await ZooKeeperStore.open(settings)
        try:
            await story(store)
        finally:
            await store.close()

    asyncio.run(whole())


def test_the_path_is_created() -> None:
    settings = new_settings()

    async def story(store: ZooKeeperStore) -> None:
        assert await names_below(store.connection, "") == ["barnabas"]
        assert sorted(await names_below(store.connection, "/barnabas")) == [
            "brokers",
            "candidates",
            "epoch",
            "head",
            "log",
            "staged",
        ]

    run(story, settings)


def test_two_stores_that_create_the_cluster_at_once_share_it() -> None:
    settings = new_settings()

    async def story() -> None:
        stores = await asyncio.gather(*(ZooKeeperStore.open(settings) for _ in range(4)))
        assert len({store.cluster_id for store in stores}) == 1
        await asyncio.gather(*(store.close() for store in stores))

    asyncio.run(story())


@pytest.mark.parametrize(
    "path, data, sentence",
    [
        ("/barnabas", b"", "is not a cluster of Barnabas; choose another path in zookeeper.connect"),
        ("/barnabas", b'{"layout": 9, "cluster_id": "a", "epoch_base": 0}', "has layout 9; this version"),
        ("/controller_epoch", b"1", "holds the metadata of an Apache Kafka cluster"),
    ],
)
def test_other_contents_of_a_path_are_refused(path: str, data: bytes, sentence: str) -> None:
    settings = new_settings()

    async def story() -> None:
        connection = Connection(settings)
        await connection.open()
        await connection.call("create", settings.chroot + path, data, makepath=True)
        await connection.close()
        with pytest.raises(StoreError, match=sentence):
            await ZooKeeperStore.open(settings)

    asyncio.run(story())


@pytest.mark.parametrize(
    "connect", ["", "host", "host:port", ":2181", "a:1,,b:2", "a:2181/x//y", "a:0", "a:1/.."]
)
def test_the_error_for_a_wrong_zookeeper_connect_is_one_sentence(connect: str) -> None:
    with pytest.raises(StoreError, match=r"zookeeper.connect=.*expected host:port"):
        ZooKeeperSettings(connect).check()


@pytest.mark.parametrize(
    "connect, servers, chroot",
    [
        ("a:2181", "a:2181", ""),
        ("a:2181/", "a:2181", ""),
        ("a:2181,[::1]:2182/kafka/one/", "a:2181,[::1]:2182", "/kafka/one"),
    ],
)
def test_zookeeper_connect_is_servers_and_a_path(connect: str, servers: str, chroot: str) -> None:
    settings = ZooKeeperSettings(connect)
    settings.check()
    assert (settings.servers, settings.chroot) == (servers, chroot)


def test_a_change_that_is_too_large_for_a_node_is_one_batch_for_others() -> None:
    settings = new_settings()
    records = large_batch()

    async def story(store: ZooKeeperStore) -> None:
        epoch = (await store.campaign(1)).epoch
        other = await ZooKeeperStore.open(settings)
        calls: list[list[object]] = []
        called = asyncio.Event()
        await other.watch(0, lambda updates: (calls.append(list(updates)), called.set())[0])
        assert await store.append(records, 0, epoch) == len(records)
        async with asyncio.timeout(10):
            await called.wait()
        assert calls == [[RecordBatch(0, records)]]
        assert list(await store.read(0)) == [RecordBatch(0, records)]
        assert len(await names_below(store.connection, "/barnabas/staged")) == 1
        await other.close()

    run(story, settings)


def test_a_snapshot_removes_what_nothing_refers_to() -> None:
    settings = new_settings()
    records = large_batch()

    async def story(store: ZooKeeperStore) -> None:
        epoch = (await store.campaign(1)).epoch
        await store.append(records, 0, epoch)
        await store.append((FeatureRecord("a", 1),), len(records), epoch)
        image = MetadataImage().apply(records)
        await store.snapshot(image, epoch)
        [staged] = await names_below(store.connection, "/barnabas/staged")
        assert staged.startswith("snapshot-")
        assert await names_below(store.connection, "/barnabas/log") == ["0000000001"]
        snapshot, after = await store.read(0)
        assert isinstance(snapshot, Snapshot)
        assert MetadataImage().apply(snapshot.records).configs == image.configs
        assert after == RecordBatch(len(records), (FeatureRecord("a", 1),))
        await store.snapshot(image.apply([FeatureRecord("a", 1)]), epoch)
        [newer] = await names_below(store.connection, "/barnabas/staged")
        assert newer != staged
        assert await names_below(store.connection, "/barnabas/log") == []

    run(story, settings)


def test_a_new_controller_removes_parts_that_were_never_committed() -> None:
    settings = new_settings()
    records = large_batch()

    async def story(store: ZooKeeperStore) -> None:
        old = await store.campaign(1)
        await store.append(records, 0, old.epoch)
        [in_use] = await names_below(store.connection, "/barnabas/staged")
        await store._writer.stage("append-0000000001-1-left", b"x" * 10)
        await store._writer.stage("snapshot-60-1-left", b"x" * 10)
        await old.resign()
        successor = await ZooKeeperStore.open(settings)
        await successor.campaign(2)
        for _ in range(1000):
            if await names_below(store.connection, "/barnabas/staged") == [in_use]:
                break
            await asyncio.sleep(0.01)
        assert await names_below(store.connection, "/barnabas/staged") == [in_use]
        assert list(await store.read(0)) == [RecordBatch(0, records)]
        await successor.close()

    run(story, settings)


def test_a_snapshot_is_due_by_size_or_by_the_number_of_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimming, "ENTRIES_MAX", 3)

    async def story(store: ZooKeeperStore) -> None:
        epoch = (await store.campaign(1)).epoch
        for offset in range(4):
            assert not store.snapshot_due
            await store.append((FeatureRecord("a", 1),), offset, epoch)
        assert store.snapshot_due
        await store.snapshot(MetadataImage().apply([FeatureRecord("a", 1)] * 4), epoch)
        assert not store.snapshot_due
        await store.append((ConfigRecord(2, "a", "b", "c" * 1000),), 4, epoch)
        assert store.snapshot_due

    run(story, new_settings(snapshot_bytes=1000))


def test_documents_are_read_as_they_were_written() -> None:
    short, long = (FeatureRecord("a\nb", 1),), large_batch(3)
    for records in (short, long, ()):
        entry = decode_append(encode_append(RecordBatch(7, records), 3, "id"))
        assert (entry.batch, entry.epoch, entry.id) == (RecordBatch(7, records), 3, "id")
        assert decode_snapshot(encode_snapshot(9, records)) == Snapshot(9, records)
    parts = split(b"x" * (2 * PART_BYTES_MAX + 1))
    assert [len(part) for part in parts] == [PART_BYTES_MAX, PART_BYTES_MAX, 1]


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\x78\x9c", b'{"offset":1}', b'{"snapshot":1}\n[{}]', b"\x00" * 20]
)
def test_damaged_documents_are_refused(data: bytes) -> None:
    with pytest.raises(StoreError):
        decode_append(data)
    if not data.startswith(b'{"snapshot"'):
        with pytest.raises(DamagedDocument):
            decode_snapshot(data)


def test_appends_go_on_while_a_snapshot_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = new_settings()
    records = large_batch()

    async def story(store: ZooKeeperStore) -> None:
        epoch = (await store.campaign(1)).epoch
        await store.append(records, 0, epoch)
        image = MetadataImage().apply(records)
        staging, go_on = asyncio.Event(), asyncio.Event()
        stage = store._writer.stage

        async def slow_stage(name: str, data: bytes) -> Staged:
            staged = await stage(name, data)
            if name.startswith("snapshot"):
                staging.set()
                await go_on.wait()
            return staged

        monkeypatch.setattr(store._writer, "stage", slow_stage)
        snapshot = asyncio.ensure_future(store.snapshot(image, epoch))
        await staging.wait()
        end = len(records)
        assert await store.append((FeatureRecord("a", 1),), end, epoch) == end + 1
        assert await store.append(large_batch(), end + 1, epoch) == end + 1 + len(records)
        go_on.set()
        await snapshot
        kinds = [name.partition("-")[0] for name in await names_below(store.connection, "/barnabas/staged")]
        assert sorted(kinds) == ["append", "snapshot"]
        first, second, third = await store.read(0)
        assert isinstance(first, Snapshot) and first.end_offset == end
        assert second == RecordBatch(end, (FeatureRecord("a", 1),))
        assert third.end_offset == end + 1 + len(records)

    run(story, settings)


def test_nodes_that_somebody_deleted_are_a_sentence() -> None:
    settings = new_settings()

    async def story(store: ZooKeeperStore) -> None:
        epoch = (await store.campaign(1)).epoch
        await store.connection.call("delete", f"{settings.chroot}/barnabas/log")
        with pytest.raises(
            StoreError, match="answered NoNodeError: check that nobody has changed or deleted"
        ):
            await store.append((FeatureRecord("a", 1),), 0, epoch)
        await store.connection.call("delete", f"{settings.chroot}/barnabas/head")
        with pytest.raises(StoreError, match="answered NoNodeError"):
            await store.read(0)

    run(story, settings)


def test_a_change_that_a_new_watcher_sees_first_reaches_the_older_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(store: ZooKeeperStore) -> None:
        older: list[set[int]] = []
        # The events of ZooKeeper come late.
        monkeypatch.setattr(store._sessions, "_watch", lambda _: None)
        await store.watch_sessions(lambda living: older.append(set(living)))
        await store.register_broker(BrokerRegistration(1, b"1" * 16, ()))
        newer: list[set[int]] = []
        await store.watch_sessions(lambda living: newer.append(set(living)))
        assert (older, newer) == ([set(), {1}], [{1}])

    run(story, new_settings())
