"""Shards follow the leaders of their partitions: opened, loaded, closed; and what callers get meanwhile."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Coroutine
from typing import Any

import pytest

from barnabas.broker import group_coordinator
from barnabas.broker.journal import PartitionJournal
from barnabas.coordination.step import JournalRecord, Step
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.records import group_tombstone
from barnabas.groups.machine import ClientInfo
from barnabas.groups.offset_calls import REMOVALS_PER_STEP
from barnabas.ids import OFFSETS_TOPIC
from barnabas.metadata.topics import TopicReference
from barnabas.replication.partition import Partition
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

GROUP = "readers"
TOPIC = "orders"
NO_OFFSET = -1


@pytest.fixture
def stage(make_stage: Any) -> Any:
    """A broker with one partition of offsets, and a topic to commit offsets of."""
    return started(make_stage)


def started(make_stage: Any, **properties: str) -> Any:
    stage = make_stage(offsets_topic_num_partitions="1", **properties)
    stage.create(TOPIC)
    stage.run(stage.start_coordinators())
    stage.run(stage.groups.ensure_topic())
    return stage


def committing(stage: Any, offset: int) -> Coroutine[Any, Any, Any]:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    answer: Coroutine[Any, Any, Any] = stage.answer(OffsetCommitRequest(group_id=GROUP, topics=[topic]), 8)
    return answer


async def commit(stage: Any, offset: int) -> int:
    answer = await committing(stage, offset)
    code: int = answer.topics[0].partitions[0].error_code
    return code


async def fetched(stage: Any) -> tuple[int, int]:
    """The code of the group, and the offset it committed."""
    topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=topics)])
    group = (await stage.answer(request, 8)).groups[0]
    return group.error_code, group.topics[0].partitions[0].committed_offset if group.topics else NO_OFFSET


def offsets_partition(stage: Any) -> Partition:
    partition: Partition = stage.replicas.get(OFFSETS_TOPIC, 0)
    return partition


def move(stage: Any, **changes: Any) -> None:
    """Give the partition of offsets another leader or epoch, and let the coordinator follow."""
    stage.place(offsets_partition(stage), **changes)
    stage.follow_coordinators()


def next_epoch(stage: Any) -> int:
    return offsets_partition(stage).leader_epoch + 1


async def some_turns() -> None:
    """Let everything happen that needs no outside event."""
    for _ in range(10):
        await asyncio.sleep(0)


async def loaded(stage: Any) -> None:
    await some_turns()
    assert not stage.groups.is_loading


class Inbox:
    def __init__(self) -> None:
        self.answers: list[Any] = []

    def resolve(self, answer: Any) -> None:
        self.answers.append(answer)


def code_of(answer: Any) -> int:
    code: int = answer.code if isinstance(answer, KafkaError) else answer.error_code
    return code


async def parked_join(stage: Any) -> Inbox:
    """A member joins and gets no answer yet: the group waits for more members."""
    inbox = Inbox()
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    client = ClientInfo("client", "/127.0.0.1")
    stage.groups.shard_of(GROUP).run(
        lambda machine, now_ms: machine.join_group(request, client, 3, inbox, now_ms), inbox
    )
    assert inbox.answers == []
    return inbox


# ---- opening


def test_before_the_topic_exists_there_is_no_coordinator(make_stage: Any) -> None:
    stage = make_stage(offsets_topic_num_partitions="1")
    stage.create(TOPIC)
    stage.run(stage.start_coordinators())
    assert stage.run(commit(stage, 5)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    stage.run(stage.groups.ensure_topic())
    stage.run(stage.groups.ensure_topic())
    assert stage.run(commit(stage, 5)) == ErrorCode.NONE
    assert len(offsets_partition(stage).replicas) == 1, "one broker cannot hold three replicas"


def test_a_cluster_with_too_few_brokers_waits_with_its_internal_topics(make_stage: Any) -> None:
    stage = make_stage(offsets_topic_num_partitions="1")
    stage.is_clustered = True
    stage.run(stage.start_coordinators())
    for _ in range(2):
        with pytest.raises(KafkaError) as refused:
            stage.run(stage.groups.ensure_topic())
        assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "replication factor" in (refused.value.message or "")
    assert stage.image.topic(OFFSETS_TOPIC) is None


def test_a_restart_loads_what_was_committed(stage: Any) -> None:
    async def story() -> None:
        assert await commit(stage, 5) == ErrorCode.NONE
        await stage.start_coordinators()
        assert stage.groups.is_loading
        assert list(stage.groups.shards()) == []
        assert await fetched(stage) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, NO_OFFSET)
        assert await commit(stage, 6) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await loaded(stage)
        assert await fetched(stage) == (ErrorCode.NONE, 5)

    stage.run(story())


def test_a_shard_whose_journal_cannot_be_read_answers_nothing(
    stage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        await commit(stage, 5)
        journal = PartitionJournal(offsets_partition(stage), stage.clock)
        journal.append([JournalRecord(b"\x00\x01 no key of an offset", b"")], None)
        await stage.start_coordinators()
        await some_turns()
        assert await fetched(stage) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, NO_OFFSET)

    stage.run(story())
    assert "cannot load partition 0 of __consumer_offsets" in caplog.text


# ---- closing


def test_when_another_broker_leads_callers_are_sent_there(stage: Any) -> None:
    async def story() -> None:
        await commit(stage, 5)
        old = stage.groups.shard_of(GROUP)
        move(stage, leader=2, leader_epoch=next_epoch(stage))
        assert await commit(stage, 6) == ErrorCode.NOT_COORDINATOR
        assert await fetched(stage) == (ErrorCode.NOT_COORDINATOR, NO_OFFSET)
        with pytest.raises(KafkaError) as refused:
            old.run(lambda machine, now_ms: machine.list_groups())
        assert refused.value.code == ErrorCode.NOT_COORDINATOR

    stage.run(story())


def test_waiting_members_get_an_error_when_the_partition_moves(stage: Any) -> None:
    async def story() -> None:
        waiting = await parked_join(stage)
        move(stage, leader=2, leader_epoch=next_epoch(stage))
        assert [answer.error_code for answer in waiting.answers] == [ErrorCode.NOT_COORDINATOR]

    stage.run(story())


def test_waiting_members_get_the_error_at_once_even_if_records_are_not_committed(stage: Any) -> None:
    async def story() -> None:
        waiting = await parked_join(stage)
        stage.place(offsets_partition(stage), isr=(1, 2))
        journal = PartitionJournal(offsets_partition(stage), stage.clock)
        stage.groups.shard_of(GROUP).run(
            lambda machine, now_ms: Step(None, [group_tombstone("another group")])
        )
        assert journal.end_offset > offsets_partition(stage).high_watermark
        move(stage, isr=(1, 2), leader=2, leader_epoch=next_epoch(stage))
        assert [code_of(answer) for answer in waiting.answers] == [ErrorCode.NOT_COORDINATOR]

    stage.run(story())


def test_leadership_that_comes_back_brings_back_the_state(stage: Any) -> None:
    async def story() -> None:
        await commit(stage, 5)
        move(stage, leader=2, leader_epoch=next_epoch(stage))
        move(stage, leader=1, leader_epoch=next_epoch(stage))
        assert await commit(stage, 6) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await loaded(stage)
        assert await fetched(stage) == (ErrorCode.NONE, 5)

    stage.run(story())


def test_a_new_leader_epoch_is_a_new_shard(stage: Any) -> None:
    async def story() -> None:
        await commit(stage, 5)
        old = stage.groups.shard_of(GROUP)
        move(stage, leader_epoch=next_epoch(stage))
        assert not old.is_active
        await loaded(stage)
        assert stage.groups.shard_of(GROUP) is not old
        assert await commit(stage, 6) == ErrorCode.NONE

    stage.run(story())


def test_a_load_stops_when_a_newer_leader_epoch_comes(stage: Any) -> None:
    async def story() -> None:
        await commit(stage, 5)
        opened = []
        for _ in range(3):
            move(stage, leader_epoch=next_epoch(stage))
            opened.append(stage.groups.shard_of(GROUP))
        await loaded(stage)
        assert [shard.is_active for shard in opened] == [False, False, True]

    stage.run(story())


def test_the_same_metadata_again_changes_nothing(stage: Any) -> None:
    async def story() -> None:
        before = stage.groups.shard_of(GROUP)
        move(stage)
        assert stage.groups.shard_of(GROUP) is before
        assert before.is_active

    stage.run(story())


def test_a_deleted_internal_topic_has_no_shards(stage: Any) -> None:
    async def story() -> None:
        await commit(stage, 5)
        await stage.controller.delete_topics([TopicReference(OFFSETS_TOPIC)])
        assert await commit(stage, 6) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        with pytest.raises(KafkaError) as refused:
            stage.groups.shard(0)
        assert refused.value.code == ErrorCode.NOT_COORDINATOR
        await stage.groups.ensure_topic()
        assert await fetched(stage) == (ErrorCode.NONE, NO_OFFSET)

    stage.run(story())


# ---- answering


def test_a_commit_is_answered_when_the_replicas_have_it(stage: Any) -> None:
    async def story() -> None:
        stage.place(offsets_partition(stage), isr=(1, 2))
        answer = asyncio.ensure_future(commit(stage, 5))
        reader = asyncio.ensure_future(fetched(stage))
        await some_turns()
        assert not answer.done()
        assert not reader.done(), "nobody reads what may still be lost"
        stage.place(offsets_partition(stage), isr=(1,))
        assert await answer == ErrorCode.NONE
        assert await reader == (ErrorCode.NONE, 5)

    stage.run(story())


def test_a_loaded_shard_does_not_answer_from_records_that_are_not_committed(stage: Any) -> None:
    async def story() -> None:
        stage.place(offsets_partition(stage), isr=(1, 2))
        written = asyncio.ensure_future(commit(stage, 5))
        await asyncio.sleep(0)
        move(stage, isr=(1, 2), leader_epoch=next_epoch(stage))
        assert await written == ErrorCode.NOT_COORDINATOR
        await loaded(stage)
        reader = asyncio.ensure_future(fetched(stage))
        await some_turns()
        assert not reader.done()
        stage.place(offsets_partition(stage), isr=(1,))
        assert await reader == (ErrorCode.NONE, 5)

    stage.run(story())


def test_a_commit_that_waits_too_long_for_its_replicas_is_answered(make_stage: Any) -> None:
    stage = started(make_stage, offsets_commit_timeout_ms="1")
    stage.place(offsets_partition(stage), isr=(1, 2))
    assert stage.run(commit(stage, 5)) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_commit_that_cannot_be_written_changes_nothing(stage: Any) -> None:
    async def story() -> None:
        await commit(stage, 5)
        stage.disk.fail("pwrite", errno.ENOSPC)
        assert await commit(stage, 6) == ErrorCode.NOT_COORDINATOR
        stage.disk.heal()
        assert await fetched(stage) == (ErrorCode.NONE, 5)
        assert await commit(stage, 7) == ErrorCode.NONE

    stage.run(story())


# ---- upkeep of groups


@pytest.mark.parametrize("slowly", [False, True], ids=["one replica", "slow replicas"])
def test_offsets_of_a_deleted_topic_are_removed_however_many_there_are(stage: Any, slowly: bool) -> None:
    partitions = 2 * REMOVALS_PER_STEP + 1

    async def story() -> None:
        topic = OffsetCommitRequestTopic(
            name=TOPIC,
            partitions=[
                OffsetCommitRequestPartition(partition_index=index, committed_offset=1)
                for index in range(partitions)
            ],
        )
        request = OffsetCommitRequest(group_id=GROUP, topics=[topic])
        shard = stage.groups.shard_of(GROUP)
        shard.run(lambda machine, now_ms: machine.offset_commit(request, 8, now_ms))
        assert len(list(shard.machine.groups.offsets.of_group(GROUP))) == partitions
        if slowly:
            stage.place(offsets_partition(stage), isr=(1, 2))
        await stage.controller.delete_topics([TopicReference(TOPIC)])
        for _ in range(3 if slowly else 0):
            # The replicas get one portion at a time.
            await some_turns()
            stage.place(offsets_partition(stage), isr=(1,))
            stage.place(offsets_partition(stage), isr=(1, 2))
        stage.place(offsets_partition(stage), isr=(1,))
        await some_turns()
        assert list(shard.machine.groups.offsets.of_group(GROUP)) == []
        await stage.start_coordinators()
        await loaded(stage)
        offsets = stage.groups.shard_of(GROUP).machine.groups.offsets
        assert list(offsets.of_group(GROUP)) == [], "the journal says so, too"

    stage.run(story())


def test_upkeep_that_fails_is_logged_and_tried_again(
    stage: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_coordinator, "RETRY_SECONDS", 0.001)

    async def story() -> None:
        await commit(stage, 5)
        offsets = stage.groups.shard_of(GROUP).machine.groups.offsets
        stage.disk.fail("pwrite", errno.ENOSPC)
        await stage.controller.delete_topics([TopicReference(TOPIC)])
        await some_turns()
        assert stage.image.topic(TOPIC) is None
        assert list(offsets.of_group(GROUP)) != []
        stage.disk.heal()
        for _ in range(1000):
            await asyncio.sleep(0.001)
            if not list(offsets.of_group(GROUP)):
                return
        pytest.fail("the offsets of the deleted topic are still there")

    with caplog.at_level(logging.WARNING):
        stage.run(story())
    assert "__consumer_offsets yet; it is tried again" in caplog.text


def test_a_load_removes_the_offsets_of_a_topic_that_was_deleted_meanwhile(stage: Any) -> None:
    async def story() -> None:
        await commit(stage, 5)
        # They stay in the journal, as if no broker had led its partition when the topic was deleted.
        stage.disk.fail("pwrite", errno.ENOSPC)
        await stage.controller.delete_topics([TopicReference(TOPIC)])
        await some_turns()
        stage.disk.heal()
        await stage.start_coordinators()
        await loaded(stage)
        offsets = stage.groups.shard_of(GROUP).machine.groups.offsets
        assert list(offsets.of_group(GROUP)) == []

    stage.run(story())


def test_offsets_expire_while_a_broker_runs(make_stage: Any) -> None:
    stage = started(make_stage, offsets_retention_minutes="1", offsets_retention_check_interval_ms="1")

    async def story() -> None:
        await commit(stage, 5)
        stage.groups.start()
        await asyncio.sleep(0.01)
        assert await fetched(stage) == (ErrorCode.NONE, 5)
        stage.clock.advance(61_000)
        for _ in range(10_000):
            if (await fetched(stage))[1] == NO_OFFSET:
                return
            await asyncio.sleep(0.001)
        raise AssertionError("the offset is still there")

    stage.run(story())
