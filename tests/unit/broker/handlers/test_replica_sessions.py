"""A follower's fetch session: the leader looks only at partitions with news, and misses none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.broker.conftest import Stage
from tests.unit.broker.handlers.test_replicated import ME, OTHER, OTHER_EPOCH, Connection, decoded

from barnabas.broker.call import Call
from barnabas.broker.fetch_reading import Reading
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.handlers.fetch import fetch
from barnabas.broker.later import Later
from barnabas.broker.session import Session
from barnabas.metadata.records import BrokerRecord, Listener, PartitionChangeRecord
from barnabas.records.builder import build_batch
from barnabas.records.validation import validate
from barnabas.replication.partition import Partition
from barnabas.wire.codec import RequestHeader
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

COUNT = 5
WAIT_MS = 60_000


class Follower:
    """Fetches five partitions in one session and appends nothing anywhere: it only counts."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.id = self.epoch = 0
        self.ends = [0] * COUNT
        self.leader_epoch = 0
        # The epoch of its last record, if it sends that.
        self.last_epoch = -1
        self.connection = Connection()

    def start(
        self, *named: int, forgotten: tuple[int, ...] = (), wait_ms: int = WAIT_MS, max_bytes: int = 1 << 20
    ) -> Any:
        topic_id = self.stage.image.topics["topic"].id
        parts = [
            FetchPartition(
                partition=index,
                fetch_offset=self.ends[index],
                log_start_offset=0,
                partition_max_bytes=1 << 20,
                current_leader_epoch=self.leader_epoch,
                last_fetched_epoch=self.last_epoch,
            )
            for index in named
        ]
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=OTHER, replica_epoch=OTHER_EPOCH),
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=self.id,
            session_epoch=self.epoch,
            topics=[FetchTopic(topic_id=topic_id, partitions=parts)] if parts else [],
            forgotten_topics_data=[ForgottenTopic(topic_id=topic_id, partitions=list(forgotten))],
        )
        self.epoch += 1
        call = Call(
            self.stage,  # type: ignore[arg-type]
            self.connection,  # type: ignore[arg-type]
            Session(self.stage.config.listeners[0], ""),
            RequestHeader(1, 17, 7, "broker-2"),
        )
        return fetch(call, request)

    async def taken(self, answer: Any) -> dict[int, int]:
        """The partitions in the answer, with the high watermark of each; their records are counted."""
        answer = decoded(await asyncio.wait_for(answer, 10) if isinstance(answer, Later) else answer)
        self.id = answer.session_id
        watermarks = {}
        for topic in answer.responses:
            for part in topic.partitions:
                assert part.error_code == 0
                watermarks[part.partition_index] = part.high_watermark
                if part.records:
                    self.ends[part.partition_index] = led(self.stage, part.partition_index).log.log_end_offset
        return watermarks

    async def fetch(self, *named: int, **options: Any) -> dict[int, int]:
        return await self.taken(self.start(*named, **options))

    async def settle(self) -> None:
        """Begin the session and hear all there is."""
        await self.fetch(*range(COUNT), wait_ms=0)
        await self.fetch(wait_ms=0)


def led(stage: Stage, index: int) -> Partition:
    return stage.replicas.leader("topic", index)


def append(stage: Stage, index: int) -> None:
    partition, now_ms = led(stage, index), stage.clock.now_ms()
    batch = build_batch([(now_ms, b"key", b"value", [])])
    partition.append(validate(memoryview(batch), partition.rules, now_ms))


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partitions that were looked at, in order."""
    indexes: list[int] = []
    is_quiet = Reading._is_quiet

    def noted(self: Reading, requested: Any) -> bool:
        indexes.append(requested.index)
        return is_quiet(self, requested)

    monkeypatch.setattr(Reading, "_is_quiet", noted)
    return indexes


@pytest.fixture
def follower(stage: Stage) -> Follower:
    stage.create("topic", partitions=COUNT)
    stage.fetch_sessions = FetchSessions(stage.clock, 10, 0)  # type: ignore[attr-defined]
    topic, old = stage.image.topics["topic"], stage.image
    placed = [
        PartitionChangeRecord(topic.id, index, isr=(ME, OTHER), replicas=(ME, OTHER))
        for index in range(COUNT)
    ]
    listener = Listener("PLAINTEXT", "127.0.0.1", 9093)
    stage.write(BrokerRecord(OTHER, OTHER_EPOCH, b"o" * 16, (listener,)), *placed)
    stage.replicas.follow(stage.image, stage.image.difference(old))
    return Follower(stage)


def test_only_partitions_with_news_are_looked_at(
    stage: Stage, follower: Follower, looked_at: list[int]
) -> None:
    async def story() -> None:
        await follower.settle()
        looked_at.clear()
        append(stage, 3)
        assert await follower.fetch() == {3: 0}
        assert looked_at == [3]
        looked_at.clear()
        waiting = follower.start(3)
        assert looked_at == [3]
        assert led(stage, 3).high_watermark == 1
        append(stage, 1)
        assert await follower.taken(waiting) == {1: 0, 3: 1}

    stage.run(story())


def test_an_append_answers_the_fetch_that_waits(stage: Stage, follower: Follower) -> None:
    async def story() -> None:
        await follower.settle()
        for index in (0, 4, 4, 2):
            waiting = follower.start(*[index for index in range(COUNT) if follower.ends[index]])
            assert isinstance(waiting, Later)
            append(stage, index)
            assert index in await follower.taken(waiting)
        assert follower.ends == [1, 0, 1, 0, 2]

    stage.run(story())


@pytest.mark.parametrize("before", [range(COUNT), (0, 2, 4)], ids=["known", "new in the session"])
def test_a_fetch_that_commits_a_record_sends_what_is_appended_because_of_it(
    stage: Stage, follower: Follower, before: tuple[int, ...]
) -> None:
    """When the end of a transaction is committed, its coordinator appends markers in the same turn."""

    async def story() -> None:
        await follower.fetch(*before, wait_ms=0)
        await follower.fetch(wait_ms=0)
        append(stage, 3)
        follower.ends[3] = 1
        led(stage, 3).committed.when(1, lambda _: append(stage, 1))
        new = [index for index in (1, 3) if index not in before]
        assert 1 in await follower.fetch(*(new or [3]))
        assert follower.ends[1] == 1

    stage.run(story())


def test_quiet_partitions_are_looked_at_twice_per_second(
    stage: Stage, follower: Follower, looked_at: list[int]
) -> None:
    """The leader must know that the follower still has everything, and the follower the high watermark."""

    async def story() -> None:
        await follower.settle()
        looked_at.clear()
        leading = led(stage, 2).leading
        assert leading is not None
        before = leading.followers[OTHER].caught_up_at
        stage.clock.advance(501)
        await follower.fetch(wait_ms=0)
        assert leading.followers[OTHER].caught_up_at > before
        assert sorted(looked_at) == list(range(COUNT))
        append(stage, 2)
        await follower.fetch()
        assert await follower.fetch(2, wait_ms=0) == {2: 1}
        led(stage, 4).log.high_watermark = 9
        assert await follower.fetch(wait_ms=0) == {}
        stage.clock.advance(501)
        assert await follower.fetch() == {4: 9}

    stage.run(story())


def test_a_partition_for_which_there_was_no_room_comes_with_the_next_answer(
    stage: Stage, follower: Follower
) -> None:
    async def story() -> None:
        await follower.settle()
        for index in range(COUNT):
            append(stage, index)
        first = await follower.fetch(max_bytes=1)
        assert len(first) == 1
        assert set(first) | set(await follower.fetch(*first)) == set(range(COUNT))
        assert follower.ends == [1] * COUNT

    stage.run(story())


def test_a_new_leader_epoch_is_sent_at_once(stage: Stage, follower: Follower) -> None:
    async def story() -> None:
        await follower.settle()
        waiting = follower.start()
        stage.place(led(stage, 1), isr=(ME, OTHER), leader_epoch=4, partition_epoch=9)
        answer = decoded(await asyncio.wait_for(waiting, 10))
        (part,) = answer.responses[0].partitions
        assert part.partition_index == 1
        assert part.error_code != 0

    stage.run(story())


def test_a_follower_that_begins_again_in_a_new_epoch_gets_the_watermark_again(
    stage: Stage, follower: Follower
) -> None:
    """It may have ignored the last answer, which had it, because it knew the new epoch already."""

    async def story() -> None:
        await follower.settle()
        assert await follower.fetch(1, wait_ms=0) == {}
        stage.place(led(stage, 1), isr=(ME, OTHER), leader_epoch=4, partition_epoch=9)
        follower.leader_epoch = 4
        assert await follower.fetch(1, wait_ms=0) == {1: 0}
        assert await follower.fetch(1, wait_ms=0) == {}

    stage.run(story())


def test_a_follower_whose_log_diverges_gets_the_watermark_again(stage: Stage, follower: Follower) -> None:
    """It truncates its log, and looks at nothing else in that answer."""

    async def story() -> None:
        append(stage, 1)
        await follower.fetch(*range(COUNT), wait_ms=0)
        # All have the record: the watermark moves.
        assert await follower.fetch(1, wait_ms=0) == {1: 1}
        follower.last_epoch = 0
        follower.ends[1] = 2
        assert 1 in await follower.fetch(1, wait_ms=0)
        follower.ends[1] = 1
        assert await follower.fetch(1, wait_ms=0) == {1: 1}

    stage.run(story())


def test_a_session_that_ends_leaves_no_waits_behind(stage: Stage, follower: Follower) -> None:
    async def story() -> None:
        await follower.settle()
        follower.start()
        assert [len(led(stage, index).appended) for index in range(COUNT)] == [1] * COUNT
        await follower.fetch(forgotten=(0, 1), wait_ms=0)
        assert [len(led(stage, index).appended) for index in range(COUNT)] == [0, 0, 1, 1, 1]
        stage.fetch_sessions.end(follower.id)  # type: ignore[attr-defined]
        assert [len(led(stage, index).appended) for index in range(COUNT)] == [0] * COUNT

    stage.run(story())
