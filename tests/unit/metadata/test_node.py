"""A broker registers through its session, with any controller, and leaves without being fenced."""

import asyncio

import pytest

from barnabas.config.values import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import random_uuid
from barnabas.metadata.brokers import Heartbeat
from barnabas.metadata.configs import ConfigRules
from barnabas.metadata.embedded import EmbeddedStore
from barnabas.metadata.node import MetadataNode
from barnabas.metadata.records import NO_LEADER, FeatureRecord, Listener
from barnabas.metadata.store import BrokerIdTaken, BrokerRegistration, StoreUnavailable
from barnabas.metadata.topics import NewTopic

RULES = ConfigRules(lambda: BrokerConfig({"node.id": "1"}))


def registration(number, previous_epoch=-1):
    listeners = (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    return BrokerRegistration(number, random_uuid(), listeners, previous_epoch=previous_epoch)


async def start(store, number=1, controller=None, previous_epoch=-1):
    """A node whose broker is unfenced."""
    starting = MetadataNode.start(store, registration(number, previous_epoch), RULES)
    node = await asyncio.wait_for(starting, 10)
    beat = Heartbeat(number, node.broker_epoch, node.image.offset)
    await (controller or node.controller).heartbeat(beat)
    return node


def test_a_started_node_is_registered_and_leads(tmp_path):
    async def story():
        node = await start(await EmbeddedStore.open(tmp_path / "m", cluster_id="0123456789abcdefghijkA"))
        assert node.cluster_id == node.image.cluster_id == "0123456789abcdefghijkA"
        assert node.image.brokers[1].epoch == node.broker_epoch
        assert node.image.alive(1)
        assert node.controller.active
        assert not node.session_lost.is_set()
        await node.close()
        assert node.session_lost.is_set()

    asyncio.run(story())


def test_a_restart_keeps_topics_leaders_and_leader_epochs(tmp_path):
    async def story():
        node = await start(await EmbeddedStore.open(tmp_path / "m"))
        await node.controller.create_topics([NewTopic("a", 2)])
        before, epoch = node.image, node.broker_epoch
        await node.close()
        node = await start(await EmbeddedStore.open(tmp_path / "m"), previous_epoch=epoch)
        assert node.image.topics == before.topics
        assert node.image.cluster_id == before.cluster_id
        assert node.broker_epoch > epoch
        await node.close()

    asyncio.run(story())


def test_two_nodes_share_one_store_and_the_second_takes_over(tmp_path):
    """As in a cluster, with the embedded store in place of ZooKeeper."""

    async def story():
        store = await EmbeddedStore.open(tmp_path / "m")
        first = await start(store, 1)
        second = await start(store, 2, first.controller)
        assert (first.controller.active, second.controller.active) == (True, False)
        await first.controller.create_topics([NewTopic("a", assignments={0: [1, 2]})])
        assert second.image.partition("a", 0).leader == 1
        with pytest.raises(KafkaError) as caught:
            await second.controller.create_topics([NewTopic("b")])
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        store.election.end_leadership()
        store.sessions.end(first._session)
        await asyncio.wait_for(second.follower.until(lambda image: not image.alive(1)), 10)
        partition = second.image.partition("a", 0)
        assert (partition.leader, partition.isr, partition.leader_epoch) == (2, (2,), 1)
        assert first.session_lost.is_set()
        assert second.controller.active
        await first.close()
        await second.close()

    asyncio.run(story())


class LateStore(EmbeddedStore):
    """Notifies watchers some time after a write, and needs time to end a session, as over a network."""

    async def watch(self, from_offset, watcher):
        loop = asyncio.get_running_loop()
        watcher(self._updates(from_offset))
        return await super().watch(self.end_offset, lambda updates: loop.call_later(0.01, watcher, updates))

    async def register_broker(self, registration):
        session = await super().register_broker(registration)
        return LateSession(session)


class LateSession:
    def __init__(self, session):
        self._session = session
        self.lost = session.lost

    async def close(self):
        await self._session.close()
        await asyncio.sleep(0.05)


def test_an_answer_waits_for_the_image_however_late_the_store_notifies(tmp_path):
    async def story():
        node = await start(await LateStore.open(tmp_path / "m"))
        for number in range(3):
            await node.controller.create_topics([NewTopic(f"topic-{number}")])
            assert node.image.partition(f"topic-{number}", 0).leader == 1
        await node.close()

    asyncio.run(story())


def test_a_conflict_waits_for_the_image_however_late_the_store_notifies(tmp_path):
    async def story():
        store = await LateStore.open(tmp_path / "m")
        node = await start(store)
        append, offsets = store.append, []

        async def overtaken_once(records, expected_offset, epoch):
            offsets.append(expected_offset)
            if len(offsets) == 1:
                await append([FeatureRecord("f", 1)], expected_offset, epoch)
            return await append(records, expected_offset, epoch)

        store.append = overtaken_once
        await node.controller.create_topics([NewTopic("a")])
        # Two attempts: the second was made on an image with the change that the first conflicted with.
        assert offsets == [3, 4]
        await node.close()

    asyncio.run(story())


def test_a_broker_that_leaves_does_not_fence_itself(tmp_path):
    async def story():
        node = await start(await LateStore.open(tmp_path / "m"))
        await node.controller.create_topics([NewTopic("a")])
        await node.close()
        node = await start(await EmbeddedStore.open(tmp_path / "m"), previous_epoch=node.broker_epoch)
        partition = node.image.partition("a", 0)
        assert (partition.leader, partition.leader_epoch) == (1, 0)
        await node.close()

    asyncio.run(story())


def test_a_lost_session_fences_and_a_new_one_brings_back(tmp_path):
    async def story():
        store = await EmbeddedStore.open(tmp_path / "m")
        node = await start(store)
        await node.controller.create_topics([NewTopic("a")])
        store.sessions.end(node._session)
        await asyncio.wait_for(node.follower.until(lambda image: not image.alive(1)), 10)
        assert node.image.partition("a", 0).leader == NO_LEADER
        new = registration(1)
        session = await store.register_broker(new)
        registered = node.follower.until(lambda image: image.brokers[1].incarnation == new.incarnation)
        image = await asyncio.wait_for(registered, 10)
        await node.controller.heartbeat(Heartbeat(1, image.brokers[1].epoch, image.offset))
        partition = node.image.partition("a", 0)
        assert (partition.leader, partition.leader_epoch) == (1, 2)
        await session.close()
        await node.close()

    asyncio.run(story())


def test_catching_up_waits_for_what_was_committed_before(tmp_path):
    async def story():
        store = await LateStore.open(tmp_path / "m")
        node = await start(store)
        await store.append([FeatureRecord("a", 1)], store.end_offset, store.election.epoch)
        assert "a" not in node.image.features, "the store has not told it yet"
        await node.catch_up()
        assert node.image.features["a"] == 1
        await node.close()

    asyncio.run(story())


def test_a_defect_in_the_controller_stops_the_start_instead_of_hanging(tmp_path, caplog):
    async def story():
        store = await EmbeddedStore.open(tmp_path / "m")

        async def broken(records, expected_offset, epoch):
            raise RuntimeError("a defect")

        store.append = broken
        with pytest.raises(RuntimeError, match="a defect"):
            await start(store)
        await store.close()

    asyncio.run(story())
    assert "can no longer become the controller" in caplog.text


def test_an_id_in_use_is_refused(tmp_path):
    async def story():
        store = await EmbeddedStore.open(tmp_path / "m")
        node = await start(store)
        with pytest.raises(BrokerIdTaken, match="another broker with id 1"):
            await start(store)
        assert node.image.alive(1)
        await node.close()

    asyncio.run(story())


def test_a_node_that_cannot_register_fails_to_start_and_leaves_nothing(tmp_path, caplog):
    async def story():
        store = await EmbeddedStore.open(tmp_path / "m")

        async def full(records, expected_offset, epoch):
            raise StoreUnavailable("the disk is full")

        store.append = full
        with pytest.raises(KafkaError, match="the disk is full"):
            await start(store)
        del store.append
        node = await start(store)
        assert node.image.alive(1)
        await node.close()

    asyncio.run(story())
    assert "is no longer the controller" in caplog.text
