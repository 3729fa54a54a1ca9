"""The fetcher: a user who seeks while it prepares a request, other replicas, other leaders."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, cast

from barnabas.client.config import consumer_config
from barnabas.client.consumer.fetcher import Fetcher
from barnabas.client.consumer.network import Network
from barnabas.client.consumer.positions import Positions
from barnabas.client.consumer.state import LATEST_TIMESTAMP, RESET, Assignments
from barnabas.client.metadata import Leader
from barnabas.client.types import Node, TopicPartition
from barnabas.errors import ErrorCode
from barnabas.ids import ZERO_UUID, Uuid
from barnabas.wire.messages import fetch

PARTITIONS = [TopicPartition("orders", number) for number in range(2)]


class OneNode:
    """A network with one broker that records the requested offsets and has no data."""

    def __init__(self) -> None:
        self.offsets: list[dict[int, int]] = []
        self.epochs: set[int] = set()

    def cached_leader(self, _: TopicPartition) -> int:
        return 1

    def has_node(self, node_id: int) -> bool:
        return node_id in (1, 2)

    def leader_epoch(self, _: TopicPartition) -> int:
        return 0

    def topic_id(self, _: str) -> Uuid:
        return ZERO_UUID

    async def ask(self, _: int, __: int, request: fetch.FetchRequest, **___: Any) -> fetch.FetchResponse:
        self.offsets.append(
            {each.partition: each.fetch_offset for topic in request.topics for each in topic.partitions}
        )
        self.epochs |= {each.current_leader_epoch for topic in request.topics for each in topic.partitions}
        return fetch.FetchResponse()


def fetched_after(change: Any) -> list[dict[int, int]]:
    """The requested offsets if the user makes a change after the fetcher has chosen the partitions."""
    network, assignments = OneNode(), Assignments()
    assignments.replace(PARTITIONS)
    for state in assignments.states.values():
        state.move_to(50)

    async def scene() -> None:
        config = consumer_config(bootstrap_servers="localhost:1")
        positions = Positions(config, cast(Network, network), assignments, cast(Any, None))
        fetcher = Fetcher(config, cast(Network, network), assignments, positions)
        fetcher._start_fetches()
        change(assignments)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(scene())
    return network.offsets


def test_a_fetch_uses_the_positions_at_the_time_it_is_sent() -> None:
    assert fetched_after(lambda assignments: None) == [{0: 50, 1: 50}]
    assert fetched_after(lambda assignments: assignments.states[PARTITIONS[1]].move_to(7)) == [{0: 50, 1: 7}]


def test_a_partition_whose_position_is_being_looked_up_is_not_fetched() -> None:
    """A fetch at offset -1 would be out of range, and would reset the position."""

    def seek_to_end(assignments: Assignments, *partitions: TopicPartition) -> None:
        for partition in partitions:
            assignments.states[partition].look_up(RESET, LATEST_TIMESTAMP)

    assert fetched_after(lambda assignments: seek_to_end(assignments, PARTITIONS[1])) == [{0: 50}]
    assert fetched_after(lambda assignments: seek_to_end(assignments, *PARTITIONS)) == []


def test_a_fetch_names_the_leader_epoch_that_the_position_was_checked_against() -> None:
    """A new leader may have another log: with its epoch, it would give records of that log."""
    network, assignments = OneNode(), Assignments()
    assignments.replace(PARTITIONS[:1])
    (state,) = assignments.states.values()
    state.move_to(50, epoch=3)

    async def scene() -> None:
        config = consumer_config(bootstrap_servers="localhost:1")
        positions = Positions(config, cast(Network, network), assignments, cast(Any, None))
        fetcher = Fetcher(config, cast(Network, network), assignments, positions)
        # The metadata know of epoch 0 of OneNode; the position was checked in epoch 7.
        state.leader_epoch = 7
        fetcher._start_fetches()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(scene())
    assert network.epochs == {7}


class TwoReplicas(OneNode):
    """Broker 1 leads and sends consumers to broker 2, which gives the `answers` of broker 2 in order."""

    def __init__(self, answers: list[fetch.PartitionData]) -> None:
        super().__init__()
        self.nodes: list[int] = []
        self.answers = answers
        self.learned: dict[TopicPartition, Leader] = {}
        self.endpoints: list[fetch.NodeEndpoint] = []

    def request_update(self) -> None:
        """The story needs no metadata."""

    def learn_leaders(self, leaders: Mapping[TopicPartition, Leader], nodes: Iterable[Node]) -> None:
        self.learned |= leaders

    async def ask(self, node: int, _: int, request: fetch.FetchRequest, **__: Any) -> fetch.FetchResponse:
        self.nodes.append(node)
        if node == 2 and self.answers:
            data = self.answers.pop(0)
        elif len(self.nodes) > 4:
            await asyncio.sleep(60)
        else:
            data = fetch.PartitionData(partition_index=0, preferred_read_replica=2 if node == 1 else -1)
        topic = fetch.FetchableTopicResponse(topic="orders", partitions=[data])
        return fetch.FetchResponse(responses=[topic], node_endpoints=self.endpoints)


def read_with(network: TwoReplicas) -> Assignments:
    assignments = Assignments()
    assignments.replace(PARTITIONS[:1])
    assignments.states[PARTITIONS[0]].move_to(50)

    async def scene() -> None:
        config = consumer_config(bootstrap_servers="localhost:1", retry_backoff_ms=0)
        positions = Positions(config, cast(Network, network), assignments, cast(Any, None))
        fetcher = Fetcher(config, cast(Network, network), assignments, positions)
        fetcher._is_settled = True
        for _ in range(20):
            fetcher._start_fetches()
            await asyncio.sleep(0)

    asyncio.run(scene())
    return assignments


def test_a_consumer_reads_from_the_replica_that_the_leader_names() -> None:
    network = TwoReplicas([])
    read_with(network)
    assert network.nodes[:3] == [1, 2, 2]


def test_a_replica_that_refuses_sends_the_consumer_back_to_the_leader() -> None:
    error = fetch.PartitionData(partition_index=0, error_code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    network = TwoReplicas([error])
    read_with(network)
    assert network.nodes[:4] == [1, 2, 1, 2]


def test_an_offset_that_a_replica_does_not_have_yet_resets_nothing() -> None:
    error = fetch.PartitionData(partition_index=0, error_code=int(ErrorCode.OFFSET_OUT_OF_RANGE))
    network = TwoReplicas([error])
    assignments = read_with(network)
    assert network.nodes[:4] == [1, 2, 1, 2]
    assert assignments.states[PARTITIONS[0]].offset == 50


def test_the_leader_that_an_answer_names_is_learned() -> None:
    named = fetch.LeaderIdAndEpoch(leader_id=3, leader_epoch=9)
    code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    network = TwoReplicas([fetch.PartitionData(partition_index=0, error_code=code, current_leader=named)])
    network.endpoints = [fetch.NodeEndpoint(node_id=3, host="h", port=1)]
    read_with(network)
    assert network.learned == {PARTITIONS[0]: Leader(3, 9)}
