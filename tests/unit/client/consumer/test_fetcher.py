"""The fetcher, and a user who seeks while it prepares a request."""

import asyncio
from typing import Any, cast

from barnabas.client.config import consumer_config
from barnabas.client.consumer.fetcher import Fetcher
from barnabas.client.consumer.network import Network
from barnabas.client.consumer.positions import Positions
from barnabas.client.consumer.state import LATEST_TIMESTAMP, RESET, Assignments
from barnabas.client.types import TopicPartition
from barnabas.ids import ZERO_UUID, Uuid
from barnabas.wire.messages import fetch

PARTITIONS = [TopicPartition("orders", number) for number in range(2)]


class OneNode:
    """A network with one broker that records the requested offsets and has no data."""

    def __init__(self) -> None:
        self.offsets: list[dict[int, int]] = []

    def cached_leader(self, _: TopicPartition) -> int:
        return 1

    def leader_epoch(self, _: TopicPartition) -> int:
        return 0

    def topic_id(self, _: str) -> Uuid:
        return ZERO_UUID

    async def ask(self, _: int, __: int, request: fetch.FetchRequest, **___: Any) -> fetch.FetchResponse:
        self.offsets.append(
            {each.partition: each.fetch_offset for topic in request.topics for each in topic.partitions}
        )
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
