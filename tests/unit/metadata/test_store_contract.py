"""What every metadata store guarantees (see barnabas.metadata.store)."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.metadata.store_harnesses import (
    STORES,
    StoreHarness,
    Watching,
    eventually,
    features,
    registration,
    with_store,
)

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import TopicRecord
from barnabas.metadata.store import (
    BrokerIdTaken,
    BrokerRegistration,
    ControllerFenced,
    MetadataStore,
    OffsetConflict,
    RecordBatch,
    Snapshot,
    StoreError,
)


@pytest.fixture(params=STORES)
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> StoreHarness:
    made: StoreHarness = request.param(tmp_path)
    return made


class TestLog:
    def test_a_new_log_is_empty(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            assert list(await store.read(0)) == []

        with_store(harness, story)

    def test_an_append_is_one_batch_at_the_expected_offset(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            epoch = (await store.campaign(1)).epoch
            assert await store.append(features(1, 2), 0, epoch) == 2
            assert await store.append(features(3), 2, epoch) == 3
            assert list(await store.read(0)) == [RecordBatch(0, features(1, 2)), RecordBatch(2, features(3))]
            assert list(await store.read(2)) == [RecordBatch(2, features(3))]
            assert list(await store.read(3)) == []

        with_store(harness, story)

    @pytest.mark.parametrize("offset", [0, 1, 3])
    def test_an_append_elsewhere_than_at_the_end_conflicts(self, harness: StoreHarness, offset: int) -> None:
        async def story(store: MetadataStore) -> None:
            epoch = (await store.campaign(1)).epoch
            await store.append(features(1, 2), 0, epoch)
            with pytest.raises(OffsetConflict) as caught:
                await store.append(features(9), offset, epoch)
            assert caught.value.end_offset == 2
            assert list(await store.read(0)) == [RecordBatch(0, features(1, 2))]

        with_store(harness, story)

    def test_only_one_of_two_appends_at_one_offset_succeeds(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            epoch = (await store.campaign(1)).epoch
            answers = await asyncio.gather(
                *(store.append(features(level), 0, epoch) for level in range(1, 6)), return_exceptions=True
            )
            assert sorted(map(type, answers), key=str) == sorted([int] + [OffsetConflict] * 4, key=str)
            winner = answers.index(1) + 1
            assert list(await store.read(0)) == [RecordBatch(0, features(winner))]

        with_store(harness, story)

    def test_the_newest_end_has_what_others_have_appended(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            assert await store.newest_end() == 0
            epoch = (await store.campaign(1)).epoch
            await store.append(features(1, 2), 0, epoch)
            assert await store.newest_end() == 2

        with_store(harness, story)

    def test_an_append_of_nothing_changes_nothing(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            epoch = (await store.campaign(1)).epoch
            assert await store.append((), 0, epoch) == 0
            assert list(await store.read(0)) == []

        with_store(harness, story)

    def test_reading_beyond_the_end_is_an_error(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            with pytest.raises(StoreError, match="cannot read the metadata log at offset 1"):
                await store.read(1)

        with_store(harness, story)

    def test_records_and_cluster_id_outlive_the_store(self, harness: StoreHarness) -> None:
        cluster_ids: list[str] = []

        async def write(store: MetadataStore) -> None:
            cluster_ids.append(store.cluster_id)
            await store.append(features(1, 2), 0, (await store.campaign(1)).epoch)

        async def read(store: MetadataStore) -> None:
            cluster_ids.append(store.cluster_id)
            assert list(await store.read(0)) == [RecordBatch(0, features(1, 2))]

        with_store(harness, write)
        with_store(harness, read)
        assert cluster_ids[0] == cluster_ids[1]
        assert len(cluster_ids[0]) == 22

    def test_a_cancelled_append_happens_whole_or_not_at_all(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            epoch = (await store.campaign(1)).epoch
            append = asyncio.ensure_future(store.append(features(1, 2), 0, epoch))
            await asyncio.sleep(0)
            append.cancel()
            await asyncio.wait([append])
            assert append.cancelled()
            try:
                end = await store.append(features(3), 0, epoch)
                expected = [RecordBatch(0, features(3))]
            except OffsetConflict as conflict:
                end = await store.append(features(3), conflict.end_offset, epoch)
                expected = [RecordBatch(0, features(1, 2)), RecordBatch(2, features(3))]
            assert list(await store.read(0)) == expected
            assert end == expected[-1].end_offset

        with_store(harness, story)


class TestWatch:
    def test_the_existing_log_arrives_at_once_and_the_rest_in_order(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            epoch = (await store.campaign(1)).epoch
            await store.append(features(1), 0, epoch)
            await store.append(features(2), 1, epoch)
            watching, late = Watching(), Watching()
            await store.watch(0, watching)
            assert watching.calls == [[RecordBatch(0, features(1)), RecordBatch(1, features(2))]]
            await store.watch(1, late)
            for offset in range(2, 12):
                await store.append(features(offset + 1), offset, epoch)
            await eventually(lambda: len(watching.updates) == 12 and len(late.updates) == 11)
            assert watching.updates == [RecordBatch(offset, features(offset + 1)) for offset in range(12)]
            assert late.updates == watching.updates[1:]

        with_store(harness, story)

    def test_a_cancelled_watch_is_not_called_again(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            epoch = (await store.campaign(1)).epoch
            gone, staying = Watching(), Watching()
            cancel = await store.watch(0, gone)
            await store.watch(0, staying)
            cancel()
            cancel()
            await store.append(features(1), 0, epoch)
            await eventually(lambda: bool(staying.updates))
            assert gone.updates == []

        with_store(harness, story)

    def test_watchers_do_not_see_a_failed_append(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            epoch = (await store.campaign(1)).epoch
            watching = Watching()
            await store.watch(0, watching)
            with pytest.raises(OffsetConflict):
                await store.append(features(9), 5, epoch)
            with pytest.raises(ControllerFenced):
                await store.append(features(9), 0, epoch - 1)
            await store.append(features(1), 0, epoch)
            await eventually(lambda: bool(watching.updates))
            assert watching.updates == [RecordBatch(0, features(1))]

        with_store(harness, story)


class TestSnapshot:
    def test_a_snapshot_replaces_what_it_trimmed(self, harness: StoreHarness) -> None:
        image = MetadataImage().apply([*features(1, 2), TopicRecord("a", b"1" * 16)])

        async def write(store: MetadataStore) -> None:
            epoch = (await store.campaign(1)).epoch
            await store.append((*features(1, 2), TopicRecord("a", b"1" * 16)), 0, epoch)
            await store.append(features(4), 3, epoch)
            await store.snapshot(image, epoch)
            await check(store)
            # A reader that had all of it before gets no older image.
            assert list(await store.read(3)) == [RecordBatch(3, features(4))]
            await store.append(features(5), 4, epoch)
            assert list(await store.read(4)) == [RecordBatch(4, features(5))]

        async def check(store: MetadataStore) -> None:
            snapshot, after, *_ = await store.read(0)
            assert isinstance(snapshot, Snapshot)
            assert snapshot.end_offset == 3
            rebuilt = MetadataImage().apply(snapshot.records)
            assert (rebuilt.topics, rebuilt.features) == (image.topics, image.features)
            assert after == RecordBatch(3, features(4))

        async def reopened(store: MetadataStore) -> None:
            await check(store)
            assert (await store.read(0))[-1] == RecordBatch(4, features(5))
            epoch = (await store.campaign(1)).epoch
            assert await store.append(features(6), 5, epoch) == 6

        with_store(harness, write)
        with_store(harness, reopened)

    def test_a_late_watcher_gets_the_snapshot_first(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            epoch = (await store.campaign(1)).epoch
            await store.append(features(1), 0, epoch)
            await store.snapshot(MetadataImage().apply(features(1)), epoch)
            await store.append(features(2), 1, epoch)
            watching = Watching()
            await store.watch(0, watching)
            assert watching.calls == [[Snapshot(1, features(1)), RecordBatch(1, features(2))]]

        with_store(harness, story)

    def test_a_batch_outlives_one_snapshot_after_the_other(self, harness: StoreHarness) -> None:
        async def write(store: MetadataStore) -> None:
            epoch = (await store.campaign(1)).epoch
            image = MetadataImage()
            for offset in range(5):
                await store.append(features(offset + 1), offset, epoch)
            for offset in range(3):
                image = image.apply(features(offset + 1))
                await store.snapshot(image, epoch)
            await check(store)

        async def check(store: MetadataStore) -> None:
            snapshot, *batches = await store.read(0)
            assert snapshot == Snapshot(3, features(1, 2, 3))
            assert batches == [RecordBatch(3, features(4)), RecordBatch(4, features(5))]

        with_store(harness, write)
        with_store(harness, check)

    def test_an_older_snapshot_does_not_bring_records_back(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            epoch = (await store.campaign(1)).epoch
            await store.append(features(1), 0, epoch)
            await store.append(features(2), 1, epoch)
            old = MetadataImage().apply(features(1))
            await store.snapshot(old.apply(features(2)), epoch)
            await store.snapshot(old, epoch)
            assert list(await store.read(0)) == [Snapshot(2, features(1, 2))]

        with_store(harness, story)

    def test_a_fenced_controller_cannot_write_a_snapshot(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            leadership = await store.campaign(1)
            await store.append(features(1), 0, leadership.epoch)
            await leadership.resign()
            with pytest.raises(ControllerFenced):
                await store.snapshot(MetadataImage().apply(features(1)), leadership.epoch)
            assert list(await store.read(0)) == [RecordBatch(0, features(1))]

        with_store(harness, story)


class TestSessions:
    def test_watchers_see_brokers_come_and_go(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            seen: list[Mapping[int, BrokerRegistration]] = []
            first = await store.register_broker(registration(1))
            await store.watch_sessions(seen.append)
            assert seen == [{1: registration(1)}]
            second = await store.register_broker(registration(2))
            await eventually(lambda: seen[-1] == {1: registration(1), 2: registration(2)})
            await first.close()
            await eventually(lambda: seen[-1] == {2: registration(2)})
            assert not second.lost.is_set()

        with_store(harness, story)

    def test_the_owner_and_watchers_see_an_expired_session(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            seen: list[Mapping[int, BrokerRegistration]] = []
            session = await store.register_broker(registration(1))
            await store.watch_sessions(seen.append)
            await harness.expire(store, session)
            async with asyncio.timeout(10):
                await session.lost.wait()
            await eventually(lambda: seen[-1] == {})
            # The id is free again, and the old session's end does not touch the new one.
            again = await store.register_broker(registration(1, incarnation=2))
            await session.close()
            await eventually(lambda: seen[-1] == {1: registration(1, incarnation=2)})
            assert not again.lost.is_set()

        with_store(harness, story)

    def test_an_id_is_taken_while_its_session_lives(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            await store.register_broker(registration(1))
            with pytest.raises(BrokerIdTaken):
                await store.register_broker(registration(1, incarnation=2))

        with_store(harness, story)

    def test_a_cancelled_session_watch_is_not_called_again(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            gone: list[Mapping[int, BrokerRegistration]] = []
            staying: list[Mapping[int, BrokerRegistration]] = []
            cancel = await store.watch_sessions(gone.append)
            await store.watch_sessions(staying.append)
            cancel()
            await store.register_broker(registration(1))
            await eventually(lambda: len(staying) == 2)
            assert gone == [{}]

        with_store(harness, story)


class TestLeadership:
    def test_one_leads_and_the_next_waits(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            first = await store.campaign(1)
            waiting = asyncio.ensure_future(store.campaign(2))
            await asyncio.sleep(0.01)
            assert not waiting.done()
            await first.resign()
            second = await asyncio.wait_for(waiting, 10)
            assert second.epoch > first.epoch
            assert first.lost.is_set() and not second.lost.is_set()

        with_store(harness, story)

    def test_an_old_epoch_cannot_write_even_before_there_is_a_new_one(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            old = await store.campaign(1)
            await store.append(features(1), 0, old.epoch)
            await harness.end_leadership(store)
            async with asyncio.timeout(10):
                await old.lost.wait()
            with pytest.raises(ControllerFenced):
                await store.append(features(2), 1, old.epoch)
            new = await store.campaign(2)
            with pytest.raises(ControllerFenced):
                await store.append(features(2), 1, old.epoch)
            assert await store.append(features(3), 1, new.epoch) == 2
            assert list(await store.read(0)) == [RecordBatch(0, features(1)), RecordBatch(1, features(3))]

        with_store(harness, story)

    def test_a_candidate_who_gives_up_does_not_block_the_next(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            first = await store.campaign(1)
            quitter = asyncio.ensure_future(store.campaign(2))
            patient = asyncio.ensure_future(store.campaign(3))
            await asyncio.sleep(0.01)
            await first.resign()
            quitter.cancel()
            third = await asyncio.wait_for(patient, 10)
            assert third.epoch > first.epoch

        with_store(harness, story)

    def test_epochs_rise_over_restarts(self, harness: StoreHarness) -> None:
        epochs: list[int] = []

        async def story(store: MetadataStore) -> None:
            leadership = await store.campaign(1)
            epochs.append(leadership.epoch)
            end = sum(update.end_offset for update in (await store.read(0))[-1:])
            await store.append(features(1), end, leadership.epoch)

        async def snapshot(store: MetadataStore) -> None:
            leadership = await store.campaign(1)
            epochs.append(leadership.epoch)
            await store.snapshot(MetadataImage().apply(features(1, 1)), leadership.epoch)

        for step in (story, story, snapshot, story):
            with_store(harness, step)
        assert epochs == sorted(set(epochs))

    def test_a_controller_can_be_deposed_by_its_epoch(self, harness: StoreHarness) -> None:
        async def story(store: MetadataStore) -> None:
            first = await store.campaign(1)
            second = asyncio.ensure_future(store.campaign(2))
            await store.depose(first.epoch - 1)
            assert not first.lost.is_set()
            await store.depose(first.epoch)
            successor = await asyncio.wait_for(second, 10)
            with pytest.raises(ControllerFenced):
                await store.append(features(1), 0, first.epoch)
            # Late, and without an effect.
            await store.depose(first.epoch)
            await store.append(features(1), 0, successor.epoch)

        with_store(harness, story)

    def test_closing_ends_leadership_and_sessions(self, harness: StoreHarness) -> None:
        async def run() -> None:
            store = await harness.open()
            leadership = await store.campaign(1)
            session = await store.register_broker(registration(1))
            await store.close()
            await store.close()
            assert leadership.lost.is_set() and session.lost.is_set()
            with pytest.raises(StoreError):
                await store.append(features(1), 0, leadership.epoch)

        asyncio.run(run())
