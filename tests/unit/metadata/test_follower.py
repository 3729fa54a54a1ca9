"""The follower's image follows the log, and listeners get every change in order."""

import asyncio
from pathlib import Path

from barnabas.metadata.embedded import EmbeddedStore
from barnabas.metadata.follower import Follower
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import RemoveTopicRecord, TopicRecord


def uuid(number: int) -> bytes:
    return number.to_bytes(16, "big")


def with_store(tmp_path: Path, story):
    async def run():
        store = await EmbeddedStore.open(tmp_path / "m")
        try:
            await story(store, (await store.campaign(1)).epoch)
        finally:
            await store.close()

    asyncio.run(run())


def test_the_existing_log_is_one_change_and_then_each_append_is_one(tmp_path):
    async def story(store, epoch):
        await store.append([TopicRecord("a", uuid(1))], 0, epoch)
        await store.append([TopicRecord("b", uuid(2))], 1, epoch)
        follower = Follower(store)
        assert follower.image.cluster_id == store.cluster_id
        changes = []
        follower.listen(
            lambda old, new, difference: changes.append(
                (old.offset, new.offset, [topic.name for topic in difference.topics_created])
            )
        )
        await follower.start()
        await store.append([TopicRecord("c", uuid(3))], 2, epoch)
        assert changes == [(0, 2, ["a", "b"]), (2, 3, ["c"])]

    with_store(tmp_path, story)


def test_a_snapshot_is_one_change_with_its_difference(tmp_path):
    async def story(store, epoch):
        follower = Follower(store)
        await follower.start()
        await store.append([TopicRecord("a", uuid(1)), TopicRecord("b", uuid(2))], 0, epoch)
        behind = follower.image
        follower.stop()
        await store.append([RemoveTopicRecord(uuid(1)), TopicRecord("c", uuid(3))], 2, epoch)
        newest = behind.apply([RemoveTopicRecord(uuid(1)), TopicRecord("c", uuid(3))])
        await store.snapshot(newest, epoch)
        changes = []
        follower.listen(lambda old, new, difference: changes.append(difference))
        await follower.start()
        assert follower.image == newest
        assert [topic.name for topic in changes[0].topics_deleted] == ["a"]
        assert [topic.name for topic in changes[0].topics_created] == ["c"]
        assert follower.image.topics["b"] == behind.topics["b"]

    with_store(tmp_path, story)


def test_waiters_continue_after_listeners_and_only_for_their_image(tmp_path):
    async def story(store, epoch):
        follower = Follower(store)
        await follower.start()
        order = []

        async def wait_for(offset):
            image = await follower.reached(offset)
            order.append(("waiter", offset, image.offset))

        follower.listen(lambda old, new, difference: order.append(("listener", new.offset)))
        waits = [asyncio.ensure_future(wait_for(offset)) for offset in (2, 1)]
        await asyncio.sleep(0)
        await store.append([TopicRecord("a", uuid(1))], 0, epoch)
        await waits[1]
        assert not waits[0].done()
        await store.append([TopicRecord("b", uuid(2))], 1, epoch)
        await waits[0]
        assert order == [("listener", 1), ("waiter", 1, 1), ("listener", 2), ("waiter", 2, 2)]
        assert (await follower.reached(1)).offset == 2

    with_store(tmp_path, story)


def test_a_listener_that_fails_or_leaves_does_not_stop_the_others(tmp_path, caplog):
    async def story(store, epoch):
        follower = Follower(store)
        await follower.start()
        changes = []

        def broken(old: MetadataImage, new: MetadataImage, difference: object) -> None:
            raise RuntimeError("listener broke")

        follower.listen(broken)
        cancel = follower.listen(lambda old, new, difference: changes.append(("gone", new.offset)))
        follower.listen(lambda old, new, difference: changes.append(("there", new.offset)))
        await store.append([TopicRecord("a", uuid(1))], 0, epoch)
        cancel()
        cancel()
        await store.append([TopicRecord("b", uuid(2))], 1, epoch)
        assert changes == [("gone", 1), ("there", 1), ("there", 2)]
        assert follower.image.offset == 2

    with_store(tmp_path, story)
    assert "a listener failed at the metadata change up to offset 1" in caplog.text


def test_a_wait_ends_when_the_follower_stops(tmp_path):
    async def story(store, epoch):
        follower = Follower(store)
        await follower.start()
        wait = asyncio.ensure_future(follower.reached(5))
        await asyncio.sleep(0)
        follower.stop()
        await asyncio.wait([wait])
        assert wait.cancelled()

    with_store(tmp_path, story)
