"""Where reading begins, and what happens after a change of leader, with a scripted network."""

import asyncio
from typing import Any, cast

import pytest

from barnabas.client.config import consumer_config
from barnabas.client.consumer.lookups import Identity
from barnabas.client.consumer.network import Network
from barnabas.client.consumer.positions import Positions
from barnabas.client.consumer.state import Assignments, PartitionState
from barnabas.client.errors import ConfigError, LogTruncationError, NoOffsetForPartitionError
from barnabas.client.types import TopicPartition
from barnabas.ids import Uuid, random_uuid
from barnabas.wire.messages import list_offsets, offset_fetch, offset_for_leader_epoch

PARTITION = TopicPartition("t", 0)


class Answers:
    """A network whose only partition has a start, an end, a committed offset and ends of epochs."""

    group_id = "g"

    def __init__(
        self, committed: int = -1, epoch: int = 5, ends: dict[int, tuple[int, int]] | None = None
    ) -> None:
        self.committed = committed
        self.epoch = epoch
        self.ends = ends or {}
        self.requests: list[int] = []
        self.id = random_uuid()

    def track(self, topics: set[str]) -> None:
        assert topics <= {"t"}

    def cached_leader(self, partition: TopicPartition) -> int | None:
        return 1

    def leader(self, partition: TopicPartition) -> int:
        return 1

    def leader_epoch(self, partition: TopicPartition) -> int:
        return self.epoch

    def topic_id(self, topic: str) -> Uuid:
        return self.id

    async def ask(self, node: int, api_key: int, request: Any) -> Any:
        self.requests.append(api_key)
        if api_key == list_offsets.API_KEY:
            timestamp = request.topics[0].partitions[0].timestamp
            partition = list_offsets.ListOffsetsPartitionResponse(offset={-2: 10, -1: 90}.get(timestamp, -1))
            topic = list_offsets.ListOffsetsTopicResponse(name="t", partitions=[partition])
            return list_offsets.ListOffsetsResponse(topics=[topic])
        epoch, offset = self.ends[request.topics[0].partitions[0].leader_epoch]
        end = offset_for_leader_epoch.EpochEndOffset(leader_epoch=epoch, end_offset=offset)
        result = offset_for_leader_epoch.OffsetForLeaderTopicResult(topic="t", partitions=[end])
        return offset_for_leader_epoch.OffsetForLeaderEpochResponse(topics=[result])

    async def ask_coordinator(self, api_key: int, request: Any, *, version_max: int) -> Any:
        self.requests.append(api_key)
        partition = offset_fetch.OffsetFetchResponsePartitions(
            committed_offset=self.committed, committed_leader_epoch=4
        )
        topic = offset_fetch.OffsetFetchResponseTopics(name="t", partitions=[partition])
        group = offset_fetch.OffsetFetchResponseGroup(group_id="g", topics=[topic])
        return offset_fetch.OffsetFetchResponse(groups=[group])


def positions(answers: Answers, reset: str = "earliest") -> tuple[Positions, Assignments, PartitionState]:
    config = consumer_config(bootstrap_servers="localhost:1", auto_offset_reset=reset)
    assignments = Assignments()
    assignments.replace([PARTITION])
    made = Positions(config, cast(Network, answers), assignments, Identity)
    return made, assignments, assignments.states[PARTITION]


@pytest.mark.parametrize(
    ("reset", "offset"), [("earliest", 10), ("latest", 90), ("by_duration:PT1H", 90)], ids=str
)
def test_without_a_committed_offset_the_setting_decides(reset: str, offset: int) -> None:
    finding, _, state = positions(Answers(), reset)
    asyncio.run(finding.resolve())
    assert (state.offset, state.fetch_offset, state.lookup) == (offset, offset, None)


def test_a_committed_offset_comes_first_and_its_epoch_is_checked() -> None:
    answers = Answers(committed=42, epoch=5, ends={4: (4, 60)})
    finding, _, state = positions(answers, "latest")
    asyncio.run(finding.resolve())
    assert (state.offset, state.epoch, state.leader_epoch) == (42, 4, 5)
    assert answers.requests == [offset_fetch.API_KEY, offset_for_leader_epoch.API_KEY]
    asyncio.run(finding.resolve())
    assert len(answers.requests) == 2


def test_with_auto_offset_reset_none_a_missing_offset_is_an_error() -> None:
    finding, assignments, state = positions(Answers(), "none")
    asyncio.run(finding.resolve())
    with pytest.raises(NoOffsetForPartitionError):
        assignments.raise_error()
    assert state.offset is None


def test_after_a_truncation_the_position_moves_back() -> None:
    finding, _, state = positions(Answers(committed=42, ends={4: (3, 30)}))
    asyncio.run(finding.resolve())
    assert (state.offset, state.epoch) == (30, 3)


def test_with_auto_offset_reset_none_a_truncation_is_an_error() -> None:
    finding, assignments, state = positions(Answers(committed=42, ends={4: (3, 30)}), "none")
    asyncio.run(finding.resolve())
    with pytest.raises(LogTruncationError) as raised:
        assignments.raise_error()
    assert (raised.value.offsets, raised.value.divergent) == ({PARTITION: 42}, {PARTITION: 30})
    assert (state.offset, state.fetch_offset) == (42, -1), "reading goes on without a seek"


@pytest.mark.parametrize("epoch", [0, 5])
def test_a_topic_that_was_created_again_is_read_from_its_beginning(epoch: int) -> None:
    """Whatever its leader epoch is: the position belongs to the old topic."""
    answers = Answers(committed=42, ends={4: (4, 60)})
    finding, _, state = positions(answers)
    asyncio.run(finding.resolve())
    assert (state.offset, state.leader_epoch) == (42, 5)
    answers.id, answers.epoch = random_uuid(), epoch
    asyncio.run(finding.resolve())
    asyncio.run(finding.resolve())
    assert (state.offset, state.leader_epoch) == (10, epoch)
    asyncio.run(finding.resolve())
    assert state.offset == 10


def test_an_unknown_epoch_resets_the_position() -> None:
    finding, _, state = positions(Answers(committed=42, ends={4: (-1, -1)}))
    asyncio.run(finding.resolve())
    asyncio.run(finding.resolve())
    assert state.offset == 10


def test_buffered_data_is_read_before_an_offset_out_of_range_is_handled() -> None:
    finding, _, state = positions(Answers())
    state.move_to(99)
    state.buffers.append(cast(Any, object()))
    finding.out_of_range(state, state.version, 99)
    assert state.offset == 99
    state.buffers.clear()
    finding.out_of_range(state, state.version - 1, 99)
    assert state.offset == 99
    finding.out_of_range(state, state.version, 99)
    asyncio.run(finding.resolve())
    assert state.offset == 10


def test_invalid_durations_are_refused() -> None:
    with pytest.raises(ConfigError, match="by_duration:P1DT2H"):
        positions(Answers(), "by_duration:yesterday")
