"""The ZooKeeper store while ZooKeeper is paused, killed or away, and while controllers replace each other."""

import asyncio
import random
import secrets
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support.lossy_proxy import LossyProxy
from tests.support.zookeeper import Ensemble, expire_session, zookeeper

from barnabas.config.values import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.configs import ConfigRules
from barnabas.metadata.controller import Controller
from barnabas.metadata.follower import Follower
from barnabas.metadata.records import FeatureRecord, Listener, MetadataRecord
from barnabas.metadata.store import (
    BrokerIdTaken,
    BrokerRegistration,
    ControllerFenced,
    OffsetConflict,
    RecordBatch,
    StoreError,
    StoreUnavailable,
    Update,
)
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings
from barnabas.metadata.zookeeper.store import ZooKeeperStore
from barnabas.testing.zookeeper import ZooKeeper, is_serving

LISTENERS = (Listener("PLAINTEXT", "broker.example", 9092),)


def feature(level: int) -> tuple[MetadataRecord, ...]:
    return (FeatureRecord(f"feature-{level}", level),)


def registration(broker_id: int) -> BrokerRegistration:
    return BrokerRegistration(broker_id, secrets.token_bytes(16), LISTENERS)


class Watching:
    def __init__(self) -> None:
        self.updates: list[Update] = []

    def __call__(self, updates: Sequence[Update]) -> None:
        self.updates += updates


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("what was waited for did not come")


class Stage:
    """Opens stores on one path of a ZooKeeper, and closes them in the end."""

    def __init__(self, server: ZooKeeper, session_timeout_ms: int = 6000) -> None:
        self.server = server
        self._timeout_ms = session_timeout_ms
        self._path = secrets.token_hex(4)
        self._stores: list[ZooKeeperStore] = []

    async def store(self, address: str | None = None) -> ZooKeeperStore:
        connect = f"{address or self.server.connect}/{self._path}"
        settings = ZooKeeperSettings(connect, self._timeout_ms, connection_timeout_ms=20_000)
        self._stores.append(await ZooKeeperStore.open(settings))
        return self._stores[-1]

    def run(self, story: Callable[["Stage"], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            try:
                await story(self)
            finally:
                for store in self._stores:
                    await store.close()

        asyncio.run(whole())


@pytest.fixture
def own_server() -> Iterator[ZooKeeper]:
    with ZooKeeper() as server:
        yield server


def test_a_short_pause_loses_nothing(own_server: ZooKeeper) -> None:
    async def story(stage: Stage) -> None:
        store, other = await stage.store(), await stage.store()
        session = await store.register_broker(registration(1))
        leadership = await store.campaign(1)
        watching = Watching()
        await other.watch(0, watching)
        own_server.pause()
        appends = asyncio.ensure_future(append_all(store, range(5), leadership.epoch))
        await asyncio.sleep(1)
        assert not appends.done()
        own_server.resume()
        await appends
        assert not session.lost.is_set() and not leadership.lost.is_set()
        await eventually(lambda: len(watching.updates) == 5)
        assert watching.updates == [RecordBatch(level, feature(level)) for level in range(5)]

    Stage(own_server).run(story)


async def append_all(store: ZooKeeperStore, levels: range, epoch: int) -> None:
    for level in levels:
        await store.append(feature(level), level, epoch)


def test_a_server_that_was_killed_and_started_again_has_every_append_once(own_server: ZooKeeper) -> None:
    async def story(stage: Stage) -> None:
        store, other = await stage.store(), await stage.store()
        session = await store.register_broker(registration(1))
        leadership = await store.campaign(1)
        watching = Watching()
        await other.watch(0, watching)
        appends = asyncio.ensure_future(append_all(store, range(300), leadership.epoch))
        await eventually(lambda: len(watching.updates) > 20)
        await asyncio.to_thread(own_server.kill)
        await asyncio.to_thread(own_server.restart)
        await appends
        await eventually(lambda: len(watching.updates) == 300)
        assert watching.updates == [RecordBatch(level, feature(level)) for level in range(300)]
        # The server knew the session, and its timeout had not passed.
        assert not session.lost.is_set() and not leadership.lost.is_set()

    Stage(own_server, session_timeout_ms=20_000).run(story)


def test_an_ensemble_goes_on_when_it_loses_one_server_after_the_other(tmp_path: Path) -> None:
    async def story(connect: str, ensemble: Ensemble) -> None:
        settings = ZooKeeperSettings(f"{connect}/ensemble", 10_000, 60_000)
        store, other = await ZooKeeperStore.open(settings), await ZooKeeperStore.open(settings)
        session, leadership = await store.register_broker(registration(1)), await store.campaign(1)
        watching = Watching()
        await other.watch(0, watching)
        for number in (1, 3):
            first = len(watching.updates)
            appends = asyncio.ensure_future(append_all(store, range(first, first + 30), leadership.epoch))
            await asyncio.to_thread(ensemble.kill, number)
            await appends
            await eventually(lambda end=first + 30: len(watching.updates) == end)  # type: ignore[misc]
            await asyncio.to_thread(ensemble.start, number)
            await eventually(lambda port=ensemble.ports[number]: is_serving("127.0.0.1", port))  # type: ignore[misc]
        assert watching.updates == [RecordBatch(level, feature(level)) for level in range(60)]
        assert not session.lost.is_set() and not leadership.lost.is_set()
        await store.close()
        await other.close()

    with Ensemble(tmp_path) as ensemble:
        asyncio.run(story(ensemble.connect, ensemble))


def test_while_the_server_is_away_calls_fail_with_a_sentence(own_server: ZooKeeper) -> None:
    async def story(stage: Stage) -> None:
        store = await stage.store()
        session = await store.register_broker(registration(1))
        leadership = await store.campaign(1)
        await asyncio.to_thread(own_server.kill)
        calls = [store.append(feature(0), 0, leadership.epoch), store.read(0)]
        for result in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(result, StoreUnavailable)
            assert f"ZooKeeper at {own_server.connect} is not reachable since 20" in str(result)
        # Nobody knows whether the session lives, so it is not lost: leaders go on serving.
        assert not session.lost.is_set()
        await asyncio.to_thread(own_server.restart)
        await eventually(lambda: store.connection.is_connected)
        async with asyncio.timeout(30):
            again = leadership if not leadership.lost.is_set() else await store.campaign(1)
            end = sum(update.end_offset for update in (await store.read(0))[-1:])
            while True:
                try:
                    assert await store.append(feature(end), end, again.epoch) == end + 1
                    break
                except OffsetConflict as conflict:
                    # The append that failed has happened after all.
                    end = conflict.end_offset
                except ControllerFenced:
                    again = await store.campaign(1)

    Stage(own_server, session_timeout_ms=3000).run(story)


def test_a_start_waits_for_a_server_that_is_away_for_longer_than_a_session(own_server: ZooKeeper) -> None:
    async def story(stage: Stage) -> None:
        store = await stage.store()
        leadership = await store.campaign(1)
        await store.append(feature(0), 0, leadership.epoch)
        starting = await stage.store()
        own_server.pause()
        watching = Watching()
        waiting = asyncio.ensure_future(starting.watch(0, watching))
        await asyncio.sleep(5)
        assert not waiting.done()
        own_server.resume()
        await waiting
        assert watching.updates == [RecordBatch(0, feature(0))]

    Stage(own_server, session_timeout_ms=3000).run(story)


def test_a_broker_can_leave_while_the_server_is_away(own_server: ZooKeeper) -> None:
    async def story(stage: Stage) -> None:
        store = await stage.store()
        session, leadership = await store.register_broker(registration(1)), await store.campaign(1)
        await asyncio.to_thread(own_server.kill)
        await eventually(lambda: not store.connection.is_connected)
        # Far below the session timeout, for which other calls would wait.
        async with asyncio.timeout(20):
            await leadership.resign()
            await session.close()
            await store.close()
        assert leadership.lost.is_set() and session.lost.is_set()

    Stage(own_server, session_timeout_ms=60_000).run(story)


def test_a_resigned_leadership_is_free_when_the_server_is_back(own_server: ZooKeeper) -> None:
    async def story(stage: Stage) -> None:
        store, other = await stage.store(), await stage.store()
        leadership = await store.campaign(1)
        waiting = asyncio.ensure_future(other.campaign(2))
        await asyncio.to_thread(own_server.kill)
        await eventually(lambda: not store.connection.is_connected)
        await leadership.resign()
        await asyncio.to_thread(own_server.restart)
        assert (await asyncio.wait_for(waiting, 30)).epoch > leadership.epoch

    Stage(own_server, session_timeout_ms=60_000).run(story)


def test_a_server_that_is_not_there_is_named() -> None:
    async def story() -> None:
        settings = ZooKeeperSettings("127.0.0.1:1/path", 2000, 300)
        with pytest.raises(StoreUnavailable, match=r"cannot reach ZooKeeper at 127.0.0.1:1 within 0.3 s"):
            await ZooKeeperStore.open(settings)

    asyncio.run(story())


def test_after_its_session_expired_a_broker_can_register_and_lead_again() -> None:
    async def story(stage: Stage) -> None:
        store = await stage.store()
        session, leadership = await store.register_broker(registration(1)), await store.campaign(1)
        await store.append(feature(0), 0, leadership.epoch)
        await expire_session(store)
        async with asyncio.timeout(30):
            await session.lost.wait()
            await leadership.lost.wait()
        with pytest.raises(ControllerFenced):
            await store.append(feature(1), 1, leadership.epoch)
        again = await store.register_broker(registration(1))
        new = await store.campaign(1)
        assert new.epoch > leadership.epoch
        assert await store.append(feature(1), 1, new.epoch) == 2
        await leadership.resign()
        await session.close()
        assert not again.lost.is_set() and not new.lost.is_set()

    Stage(zookeeper()).run(story)


def test_after_all_sessions_expired_there_is_one_controller() -> None:
    async def story(stage: Stage) -> None:
        stores = [await stage.store() for _ in range(4)]
        first = await stores[0].campaign(0)
        waiting = [asyncio.ensure_future(store.campaign(number)) for number, store in enumerate(stores)]
        seen: list[set[int]] = []
        await stores[3].watch_sessions(lambda living: seen.append(set(living)))
        sessions = [await store.register_broker(registration(number)) for number, store in enumerate(stores)]
        await eventually(lambda: seen[-1] == {0, 1, 2, 3})
        await asyncio.gather(*map(expire_session, stores))
        async with asyncio.timeout(30):
            for session in sessions:
                await session.lost.wait()
            await first.lost.wait()
            await eventually(lambda: seen[-1] == set())
            done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0.3)
        assert sum(task.done() for task in waiting) == 1
        assert done.pop().result().epoch > first.epoch
        for task in pending:
            task.cancel()

    Stage(zookeeper()).run(story)


@pytest.mark.parametrize("lost", ["lose_request", "lose_answer"])
def test_an_append_whose_answer_is_lost_happens_once(lost: str) -> None:
    async def story(stage: Stage) -> None:
        proxy = await LossyProxy(stage.server.port).start()
        try:
            store = await stage.store(proxy.address)
            leadership = await store.campaign(1)
            watching = Watching()
            await store.watch(0, watching)
            for level in range(10):
                setattr(proxy, lost, level % 3 == 1)
                assert await store.append(feature(level), level, leadership.epoch) == level + 1
            expected = [RecordBatch(level, feature(level)) for level in range(10)]
            assert list(await store.read(0)) == expected
            await eventually(lambda: watching.updates == expected)
            assert proxy.lost == 3
            await store.close()
        finally:
            await proxy.close()

    Stage(zookeeper()).run(story)


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 100))]
)
def test_the_old_controller_writes_nothing_after_the_takeover(seed: int) -> None:
    """Two controllers append as fast as they can while sessions expire. Every entry has the epoch of its
    writer: in the log they never go down, and every append that was confirmed is there once."""
    chooser = random.Random(seed)

    async def story(stage: Stage) -> None:
        stores = [await stage.store() for _ in range(2)]
        confirmed: list[Confirmed] = []
        writers = [asyncio.ensure_future(write(store, confirmed)) for store in stores]
        for _ in range(3):
            count = len(confirmed)
            await eventually(lambda before=count: len(confirmed) > before)  # type: ignore[misc]
            await asyncio.sleep(chooser.uniform(0.0, 0.1))
            await expire_session(confirmed[-1].store if chooser.random() < 0.7 else chooser.choice(stores))
        count, last_epoch = len(confirmed), confirmed[-1].epoch
        await expire_session(confirmed[-1].store)
        await eventually(lambda: len(confirmed) > count and confirmed[-1].epoch > last_epoch)
        for task in writers:
            task.cancel()
        await asyncio.wait(writers)
        reader = (await stage.store())._reader
        part = await reader.from_offset(0)
        entries = [(await reader.entry(stored.sequence)).epoch for stored in part.batches]
        assert entries == sorted(entries)
        levels = [stored.batch.records[0] for stored in part.batches]
        written = {record.level for record in levels if isinstance(record, FeatureRecord)}
        assert len(written) == len(levels)
        assert written >= {change.level for change in confirmed}

    Stage(zookeeper()).run(story)


class Confirmed(NamedTuple):
    store: ZooKeeperStore
    epoch: int
    level: int


async def write(store: ZooKeeperStore, confirmed: list[Confirmed]) -> None:
    while True:
        leadership = await store.campaign(1)
        end = sum(update.end_offset for update in (await store.read(0))[-1:])
        while True:
            level = secrets.randbits(48) + 1
            try:
                end = await store.append((FeatureRecord("f", level),), end, leadership.epoch)
            except OffsetConflict as conflict:
                end = conflict.end_offset
            except StoreError:
                await leadership.resign()
                break
            else:
                confirmed.append(Confirmed(store, leadership.epoch, level))


def test_a_write_that_arrives_after_the_takeover_changes_nothing() -> None:
    async def story(stage: Stage) -> None:
        old_store, new_store = await stage.store(), await stage.store()
        old = await old_store.campaign(1)
        await old_store.append(feature(0), 0, old.epoch)
        waiting = asyncio.ensure_future(new_store.campaign(2))
        sending, go_on = asyncio.Event(), asyncio.Event()
        transaction = old_store.connection.transaction

        async def late(operations: Sequence[tuple[Any, ...]]) -> list[Any]:
            sending.set()
            await go_on.wait()
            return await transaction(operations)

        old_store.connection.transaction = late  # type: ignore[method-assign]
        append = asyncio.ensure_future(old_store.append(feature(1), 1, old.epoch))
        await sending.wait()
        await expire_session(old_store)
        new = await waiting
        go_on.set()
        with pytest.raises(ControllerFenced):
            await append
        assert await new_store.append(feature(2), 1, new.epoch) == 2
        assert list(await new_store.read(0)) == [RecordBatch(0, feature(0)), RecordBatch(1, feature(2))]

    Stage(zookeeper()).run(story)


def test_a_taken_broker_id_names_who_has_it() -> None:
    async def story(stage: Stage) -> None:
        store, other = await stage.store(), await stage.store()
        await store.register_broker(registration(7))
        with pytest.raises(BrokerIdTaken, match=r"broker id 7 is taken by the broker at broker.example:9092"):
            await other.register_broker(registration(7))

    Stage(zookeeper(), session_timeout_ms=1000).run(story)


def test_a_broker_waits_for_the_session_of_its_last_start_to_end() -> None:
    async def story(stage: Stage) -> None:
        store, other = await stage.store(), await stage.store()
        session = await store.register_broker(registration(7))
        waiting = asyncio.ensure_future(other.register_broker(registration(7)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await expire_session(store)
        assert not (await asyncio.wait_for(waiting, 10)).lost.is_set()
        async with asyncio.timeout(10):
            await session.lost.wait()

    Stage(zookeeper()).run(story)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_closing_leaves_no_thread_and_no_file(own_server: ZooKeeper) -> None:
    async def story(stage: Stage) -> None:
        first = await stage.store()
        await first.close()
        await asyncio.sleep(0.1)
        threads, files = threading.active_count(), open_files()
        for _ in range(3):
            store = await stage.store()
            await store.register_broker(registration(1))
            leadership = await store.campaign(1)
            await store.watch(0, Watching())
            await store.append(
                feature(1), sum(u.end_offset for u in (await store.read(0))[-1:]), leadership.epoch
            )
            await store.close()
        store = await stage.store()
        await asyncio.to_thread(own_server.kill)
        await store.close()
        await eventually(lambda: threading.active_count() <= threads + 1)
        await eventually(lambda: open_files() <= files + 1)

    Stage(own_server, session_timeout_ms=2000).run(story)


def test_a_change_while_the_server_is_away_times_out_and_works_again_later(own_server: ZooKeeper) -> None:
    async def story(stage: Stage) -> None:
        store = await stage.store()
        follower = Follower(store)
        await follower.start()
        controller = Controller(store, follower, ConfigRules(lambda: BrokerConfig({})))
        await store.register_broker(registration(1))
        controller.lead(await store.campaign(1))
        await controller.register_broker(registration(1))
        await asyncio.to_thread(own_server.kill)
        with pytest.raises(KafkaError, match="is not reachable since") as caught:
            await controller.allocate_producer_ids(1, follower.image.brokers[1].epoch)
        assert caught.value.code == ErrorCode.REQUEST_TIMED_OUT
        await asyncio.to_thread(own_server.restart)
        await eventually(lambda: store.connection.is_connected)
        if not controller.active:
            controller.lead(await store.campaign(1))
        blocks = [
            await controller.allocate_producer_ids(1, follower.image.brokers[1].epoch) for _ in range(2)
        ]
        assert blocks[0].first_id < blocks[1].first_id

    Stage(own_server, session_timeout_ms=3000).run(story)
