"""What a client learns about its cluster: brokers, leaders, coordinators, and their changes."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Any

import pytest
from tests.support.scripted_peer import CLOSE, Answer, ScriptedPeer, versions

from barnabas.client.cluster import GROUP, Cluster
from barnabas.client.config import admin_config
from barnabas.client.errors import DisconnectedError, KafkaError
from barnabas.client.metadata import ClusterMetadata, Leader
from barnabas.client.types import Node, TopicPartition
from barnabas.errors import ErrorCode
from barnabas.wire.codec import Request
from barnabas.wire.messages import find_coordinator, metadata

ORDERS = TopicPartition("orders", 0)


class Scripted:
    """Answers Metadata and FindCoordinator as broker 1 at its own port would."""

    def __init__(self) -> None:
        self.peer = ScriptedPeer(self)
        self.topics: list[metadata.MetadataResponseTopic] = []
        self.brokers: list[metadata.MetadataResponseBroker] = []
        self.coordinator_errors: list[int] = []
        self.metadata_errors: list[int] = []

    def __call__(self, request: Request) -> Answer:
        match request.header.api_key:
            case metadata.API_KEY:
                broker = metadata.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.peer.port)
                return metadata.MetadataResponse(
                    brokers=self.brokers or [broker],
                    cluster_id="c",
                    controller_id=1,
                    topics=self.topics,
                    error_code=self.metadata_errors.pop() if self.metadata_errors else 0,
                )
            case find_coordinator.API_KEY:
                code = self.coordinator_errors.pop() if self.coordinator_errors else 0
                coordinator = find_coordinator.Coordinator(
                    key="g", node_id=1, host="127.0.0.1", port=self.peer.port, error_code=code
                )
                return find_coordinator.FindCoordinatorResponse(coordinators=[coordinator])
            case _:
                return versions({metadata.API_KEY: (0, 13), find_coordinator.API_KEY: (0, 6)})


def topic(*, epoch: int = 0, leader: int = 1, error: int = 0) -> metadata.MetadataResponseTopic:
    partition = metadata.MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    return metadata.MetadataResponseTopic(
        name="orders", error_code=error, topic_id=b"i" * 16, partitions=[] if error else [partition]
    )


def run(scripted: Scripted, story: Callable[[Cluster], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def within(bootstrap: str) -> None:
        cluster = Cluster(admin_config(**{"bootstrap_servers": bootstrap, "retry_backoff_ms": 5, **settings}))
        cluster.start()
        try:
            async with asyncio.timeout(20):
                await story(cluster)
        finally:
            await cluster.close()
            await asyncio.sleep(0)

    with scripted.peer as peer:
        asyncio.run(within(peer.bootstrap))


def test_a_leader_is_found_and_waited_for() -> None:
    scripted = Scripted()
    scripted.topics = [topic(error=ErrorCode.LEADER_NOT_AVAILABLE)]

    async def story(cluster: Cluster) -> None:
        refreshed = asyncio.Event()
        cluster.listeners.append(lambda known: refreshed.set())
        leader = asyncio.ensure_future(cluster.leader(ORDERS))
        await refreshed.wait()
        assert not leader.done()
        scripted.topics = [topic(epoch=3)]
        assert await leader == Leader(1, 3)
        assert cluster.metadata.partition_count("orders") == 1
        assert cluster.metadata.names == {b"i" * 16: "orders"}

    run(scripted, story)


@pytest.mark.parametrize(
    "before", [[], [topic(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)], [topic(leader=-1)]]
)
def test_a_tracked_topic_that_is_created_later_is_found_without_a_request(before: list[Any]) -> None:
    scripted = Scripted()
    scripted.topics = before
    has_leader = asyncio.Event()

    async def story(cluster: Cluster) -> None:
        refreshed = asyncio.Event()
        cluster.listeners.append(lambda known: refreshed.set())
        cluster.listeners.append(lambda known: known.leader_of(ORDERS) and has_leader.set())
        cluster.track(["orders"])
        await refreshed.wait()
        assert not has_leader.is_set()
        scripted.topics = [topic()]
        await has_leader.wait()

    run(scripted, story)


def test_a_topic_that_may_not_be_read_is_requested_only_once() -> None:
    scripted = Scripted()
    scripted.topics = [topic(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    refreshes: list[object] = []

    async def story(cluster: Cluster) -> None:
        refreshed = asyncio.Event()
        cluster.listeners.append(refreshes.append)
        cluster.listeners.append(lambda known: refreshed.set())
        cluster.track(["orders"])
        await refreshed.wait()
        await asyncio.sleep(0.2)  # 40 times the pause between two requests

    run(scripted, story)
    assert len(refreshes) == 1


def test_an_error_that_is_not_retriable_is_raised() -> None:
    scripted = Scripted()
    scripted.topics = [topic(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)]

    async def story(cluster: Cluster) -> None:
        with pytest.raises(KafkaError, match="'orders'") as caught:
            await cluster.topic("orders")
        assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED

    run(scripted, story)


def test_an_older_leader_epoch_is_ignored() -> None:
    answer = metadata.MetadataResponse(brokers=[metadata.MetadataResponseBroker(node_id=1)])
    known = ClusterMetadata()
    for epoch, expected in ((5, 5), (4, 5), (6, 6)):
        answer.topics = [topic(epoch=epoch)]
        known = known.updated(answer)
        assert known.leader_of(ORDERS) == Leader(1, expected)


def test_a_broker_that_is_avoided_is_asked_only_if_there_is_no_other() -> None:
    """One that is cut off from its cluster goes on answering, with leaders of the past."""
    stale, other = Scripted(), Scripted()
    brokers = [
        metadata.MetadataResponseBroker(node_id=node_id, host="127.0.0.1", port=each.peer.port)
        for node_id, each in enumerate((stale, other), start=1)
    ]
    stale.brokers = other.brokers = brokers
    stale.topics, other.topics = [topic(epoch=1, leader=1)], [topic(epoch=2, leader=2)]

    async def story(cluster: Cluster) -> None:
        cluster.track(["orders"])
        for _ in range(3):
            await cluster.refresh()
            assert cluster.metadata.leader_of(ORDERS) == Leader(1, 1)
        cluster.avoid(1)
        await cluster.refresh()
        assert cluster.metadata.leader_of(ORDERS) == Leader(2, 2)
        connection = await cluster.any()
        gone = asyncio.Event()
        connection.when_closed = lambda _: gone.set()
        assert connection.port == other.peer.port
        await asyncio.to_thread(stop_other.close)
        await gone.wait()
        assert (await cluster.any()).port == stale.peer.port

    with ExitStack() as stop_other:
        stop_other.enter_context(other.peer)
        run(stale, story)


def test_a_bootstrap_server_that_is_down_is_skipped() -> None:
    with ScriptedPeer(lambda request: CLOSE) as dead:
        port = dead.port
    scripted = Scripted()

    async def story(cluster: Cluster) -> None:
        await cluster.refresh()
        assert list(cluster.metadata.nodes) == [1]
        assert (await cluster.controller()).port == scripted.peer.port

    run(scripted, story, bootstrap_servers=f"127.0.0.1:{port},127.0.0.1:{scripted.peer.port}")


def test_a_lost_connection_is_opened_again_and_shared() -> None:
    scripted = Scripted()

    async def story(cluster: Cluster) -> None:
        await cluster.refresh()
        first = await cluster.connection(1)
        scripted.peer.disconnect_all()
        gone = asyncio.Event()
        first.when_closed = lambda _: gone.set()
        if not first.is_closed:
            await gone.wait()
        second, third = await asyncio.gather(cluster.connection(1), cluster.connection(1))
        assert second is third is not first
        assert await cluster.connection(1, "coordinator") is not second

    run(scripted, story)
    assert scripted.peer.connections == 3


def test_a_coordinator_is_remembered_until_it_is_forgotten() -> None:
    scripted = Scripted()
    scripted.coordinator_errors = [int(ErrorCode.COORDINATOR_NOT_AVAILABLE)]

    async def story(cluster: Cluster) -> None:
        with pytest.raises(KafkaError) as caught:
            await cluster.coordinator(GROUP, "g")
        assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await cluster.coordinator(GROUP, "g") is await cluster.coordinator(GROUP, "g")
        cluster.forget_coordinator(GROUP, "g")
        await cluster.coordinator(GROUP, "g")

    run(scripted, story)
    requests = [header for header in scripted.peer.requests if header.api_key == find_coordinator.API_KEY]
    assert len(requests) == 3


def test_an_unknown_broker_is_a_disconnected_error() -> None:
    async def story(cluster: Cluster) -> None:
        with pytest.raises(DisconnectedError, match="no broker 7"):
            await cluster.connection(7)

    run(Scripted(), story)


def test_a_broker_may_send_the_client_back_to_its_bootstrap_servers() -> None:
    scripted = Scripted()

    async def story(cluster: Cluster) -> None:
        await cluster.refresh()
        scripted.metadata_errors = [int(ErrorCode.REBOOTSTRAP_REQUIRED)]
        with pytest.raises(DisconnectedError, match="start again"):
            await cluster.refresh()
        assert not cluster.metadata.nodes
        await cluster.refresh()
        assert list(cluster.metadata.nodes) == [1]

    run(scripted, story)
    assert scripted.peer.connections == 2


def test_leaders_that_an_answer_names_replace_older_ones_only() -> None:
    first = metadata.MetadataResponse(
        brokers=[metadata.MetadataResponseBroker(node_id=1, host="one", port=1)], topics=[topic(epoch=3)]
    )
    known = ClusterMetadata().updated(first)
    node = Node(2, "two", 2)
    newer = known.with_leaders({ORDERS: Leader(2, 4)}, [node])
    assert newer.leader_of(ORDERS) == Leader(2, 4)
    assert newer.nodes[2] == node
    assert known.leader_of(ORDERS) == Leader(1, 3)
    assert newer.with_leaders({ORDERS: Leader(1, 3)}, []).leader_of(ORDERS) == Leader(2, 4)
    unknown = {TopicPartition("nothing", 0): Leader(2, 9), ORDERS: Leader(7, 9)}
    assert newer.with_leaders(unknown, []).leader_of(ORDERS) == Leader(2, 4)
