"""A broker in a cluster: registered fenced, unfenced, registered again after a lost session, shut down."""

from collections.abc import Callable
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import pytest
from tests.support.small_cluster import SmallCluster, eventually, run_cluster

from barnabas.broker.broker import Broker
from barnabas.errors import KafkaError
from barnabas.metadata.store import BrokerIdTaken


def end_session(cluster: SmallCluster, broker_id: int) -> None:
    session: Any = cluster.brokers[broker_id].metadata._session
    cluster.store.sessions.end(session)


def after_step(monkeypatch: pytest.MonkeyPatch, step: str, then: Callable[[Broker], None]) -> None:
    """Call `then` when this step of a start has ended."""
    original = getattr(Broker, step)

    def take(broker: Broker) -> None:
        original(broker)
        then(broker)

    async def take_and_wait(broker: Broker) -> None:
        await original(broker)
        then(broker)

    monkeypatch.setattr(Broker, step, take_and_wait if iscoroutinefunction(original) else take)


def test_brokers_know_each_other_and_one_controller(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2, 3)
        assert [broker.controller.active for broker in cluster.brokers.values()] == [True, False, False]
        assert {broker.controller_id for broker in cluster.brokers.values()} == {1}
        for broker_id, broker in cluster.brokers.items():
            assert broker.metadata.broker_epoch == broker.image.brokers[broker_id].epoch
            assert all(broker.image.alive(other) for other in (1, 2, 3))

    run_cluster(tmp_path, story)


def test_a_broker_that_loses_its_session_comes_back_with_a_new_epoch(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        broker = cluster.brokers[2]
        await cluster.create_topic(1, "alone", replicas=2)
        before = broker.metadata.broker_epoch
        end_session(cluster, 2)
        await eventually(lambda: broker.metadata.broker_epoch > before and broker.image.alive(2))
        assert broker.life.sessions_lost == 1
        # The controller takes requests with the new epoch.
        assert await broker.producer_ids.next() >= 0

    run_cluster(tmp_path, story)


@pytest.mark.parametrize("step", ["_load_logs", "_open_partitions"])
def test_a_broker_that_loses_its_session_while_it_starts_registers_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Before the controller has registered it, and before it is unfenced."""

    def lose_session(broker: Broker) -> None:
        session: Any = broker.metadata._session
        if broker.id == 2 and broker.life.sessions_lost == 0:
            session._sessions.end(session)

    after_step(monkeypatch, step, lose_session)

    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        assert cluster.brokers[2].life.sessions_lost == 1
        await cluster.create_topic(2, "both", replicas=2)

    run_cluster(tmp_path, story)


@pytest.mark.parametrize("step", ["_load_logs", "_open_partitions"])
def test_a_session_that_is_lost_during_the_start_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    stores: list[Any] = []

    def lose_session(broker: Broker) -> None:
        if broker.id == 2:
            session: Any = broker.metadata._session
            stores[0].sessions.end(session)

    after_step(monkeypatch, step, lose_session)

    async def story(cluster: SmallCluster) -> None:
        stores.append(cluster.store)
        await cluster.start(1, 2)
        assert cluster.brokers[2].life.sessions_lost == 1
        assert await cluster.brokers[2].producer_ids.next() >= 0

    run_cluster(tmp_path, story)


def test_a_controller_that_loses_its_session_is_registered_by_the_next_one(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        before = cluster.brokers[1].metadata.broker_epoch
        cluster.store.election.end_leadership()
        end_session(cluster, 1)
        await eventually(lambda: cluster.brokers[2].controller.active)
        await eventually(lambda: cluster.brokers[1].metadata.broker_epoch > before)
        await eventually(lambda: cluster.brokers[2].image.alive(1))
        assert cluster.brokers[2].image.controller_id == 2

    run_cluster(tmp_path, story)


def test_a_broker_that_the_controller_fences_asks_to_be_unfenced(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        node = cluster.brokers[2].metadata
        epoch, offset = node.broker_epoch, node.image.offset
        await cluster.brokers[1].controller.fence_broker(2)
        await node.follower.until(lambda image: image.alive(2) and image.offset > offset)
        assert node.broker_epoch == epoch

    run_cluster(tmp_path, story)


def test_a_clean_stop_moves_leaderships_to_the_other_replica(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        await cluster.create_topic(1, "moving", replicas=2, partitions=4)
        image = cluster.brokers[1].image
        assert {image.topics["moving"].partitions[index].leader for index in range(4)} == {1, 2}
        await cluster.stop(2)
        partitions = cluster.brokers[1].image.topics["moving"].partitions
        assert {partition.leader for partition in partitions} == {1}
        assert not cluster.brokers[1].image.alive(2)

    run_cluster(tmp_path, story)


def test_a_stop_without_controlled_shutdown_leaves_it_to_the_end_of_the_session(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1)
        await cluster.start(2, controlled_shutdown_enable="false")
        await cluster.create_topic(1, "moving", replicas=2, partitions=2)
        asked: list[object] = []
        cluster.brokers[2].controller_channel.send = lambda *more, **_: asked.append(more)  # type: ignore[method-assign, assignment]
        await cluster.stop(2)
        assert asked == []
        await eventually(lambda: not cluster.brokers[1].image.alive(2))

    run_cluster(tmp_path, story)


def test_a_broker_id_can_be_used_once(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1)
        first = cluster.brokers[1]
        with pytest.raises(BrokerIdTaken, match="id 1"):
            await cluster.start(1, log_dirs=str(tmp_path / "another"))
        await cluster.brokers[1].stop()
        cluster.brokers[1] = first
        assert first.image.alive(1)

    run_cluster(tmp_path, story)


def test_topics_get_no_more_replicas_than_brokers_live(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        with pytest.raises(KafkaError, match="INVALID_REPLICATION_FACTOR"):
            await cluster.create_topic(2, "too-many", replicas=3)

    run_cluster(tmp_path, story)
