"""How transactions end: the decision is journaled, then markers are written until every partition has one."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker import transaction_coordinator
from barnabas.coordination.step import Producer
from barnabas.errors import ErrorCode
from barnabas.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from barnabas.metadata.records import PartitionChangeRecord
from barnabas.metadata.topics import TopicReference
from barnabas.records.batch import iter_headers
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER, read_marker
from barnabas.replication.partition import Partition
from barnabas.transactions.states import State
from barnabas.transactions.steps import MarkersToWrite
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

ID = "payments"
GROUP = "readers"
TOPICS = ("one", "two")
TIMEOUT_MS = 60_000
# The last version whose producers keep their epoch; with the next one each end changes it.
EPOCH_STAYS = 4


@pytest.fixture
def stage(make_stage: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(transaction_coordinator, "RETRY_SECONDS", 0.001)
    stage = make_stage(transaction_state_log_num_partitions="1", offsets_topic_num_partitions="1")
    for topic in TOPICS:
        stage.create(topic)
    stage.run(stage.start_coordinators())
    stage.run(stage.transactions.ensure_topic())
    stage.run(stage.groups.ensure_topic())
    return stage


async def begun(stage: Any, timeout_ms: int = TIMEOUT_MS) -> Producer:
    """A producer with a transaction that has a record in each topic."""
    request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=timeout_ms)
    answer = await stage.answer(request, 4)
    assert answer.error_code == ErrorCode.NONE
    producer = Producer(answer.producer_id, answer.producer_epoch)
    added = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=ID,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in TOPICS],
    )
    results = (await stage.answer(added, 3)).results_by_topic_v3_and_below
    assert {result.results_by_partition[0].partition_error_code for result in results} == {ErrorCode.NONE}
    for topic in TOPICS:
        stage.append(
            topic,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=True,
        )
    return producer


async def end(stage: Any, producer: Producer, *, commit: bool, version: int = EPOCH_STAYS) -> int:
    request = EndTxnRequest(
        transactional_id=ID, producer_id=producer.id, producer_epoch=producer.epoch, committed=commit
    )
    code: int = (await stage.answer(request, version)).error_code
    return code


def partition_of(stage: Any, topic: str) -> Partition:
    partition: Partition = stage.replicas.get(topic, 0)
    return partition


def markers(stage: Any, topic: str) -> list[int]:
    """The kinds of the markers in a topic's log, in order."""
    log = partition_of(stage, topic).log
    piece = log.read(0, 1 << 20, upper_offset=log.log_end_offset, at_least_one=True)
    assert piece.file is not None
    data = memoryview(os.pread(piece.file.fileno(), piece.size, piece.position))
    piece.release()
    written = [
        read_marker(data[position : position + header.size])
        for position, header in iter_headers(data)
        if header.is_control
    ]
    return [marker.kind for marker in written if marker is not None]


def state(stage: Any) -> State:
    kept: State = stage.transactions.shard_of(ID).machine.transactions[ID].state
    return kept


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(5000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("this did not happen in time")


async def some_retries() -> None:
    await asyncio.sleep(0.02)


def move(stage: Any, topic: str, **changes: Any) -> None:
    """Give a topic's partition another leader or in-sync set, and let the coordinators follow."""
    partition = partition_of(stage, topic)
    stage.place(partition, **{"leader_epoch": partition.leader_epoch + 1, **changes})
    stage.follow_coordinators()


# ---- the ordinary end


@pytest.mark.parametrize(
    "commit, kind, complete",
    [(True, COMMIT_MARKER, State.COMPLETE_COMMIT), (False, ABORT_MARKER, State.COMPLETE_ABORT)],
    ids=["commit", "abort"],
)
def test_every_partition_gets_one_marker(stage: Any, commit: bool, kind: int, complete: State) -> None:
    async def story() -> None:
        producer = await begun(stage)
        assert await end(stage, producer, commit=commit) == ErrorCode.NONE
        assert [markers(stage, topic) for topic in TOPICS] == [[kind], [kind]]
        assert state(stage) is complete
        for topic in TOPICS:
            partition = partition_of(stage, topic)
            assert partition.last_stable_offset == partition.log.log_end_offset

    stage.run(story())


def test_offsets_of_a_transaction_show_when_it_is_committed(stage: Any) -> None:
    def committed() -> int | None:
        offsets = stage.groups.shard_of(GROUP).machine.groups.offsets
        stored = offsets.get(GROUP, TopicPartition("one", 0))
        return None if stored is None else int(stored.offset)

    async def story() -> None:
        producer = await begun(stage)
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        request = TxnOffsetCommitRequest(
            transactional_id=ID,
            group_id=GROUP,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            topics=[TxnOffsetCommitRequestTopic(name="one", partitions=[partition])],
        )
        answer = await stage.answer(request, 5)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        assert committed() is None
        assert await end(stage, producer, commit=True) == ErrorCode.NONE
        assert committed() == 7
        assert markers(stage, OFFSETS_TOPIC) == [COMMIT_MARKER]

    stage.run(story())


def test_a_transaction_that_takes_too_long_is_aborted(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage, timeout_ms=1)
        await until(lambda: state(stage) is State.COMPLETE_ABORT)
        assert [markers(stage, topic) for topic in TOPICS] == [[ABORT_MARKER], [ABORT_MARKER]]
        assert await end(stage, producer, commit=True) == ErrorCode.PRODUCER_FENCED

    stage.run(story())


# ---- in order: journal, marker, completion


def test_no_marker_is_written_before_the_decision_is_committed(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        stage.place(partition_of(stage, TRANSACTIONS_TOPIC), isr=(1, 2))
        answer = asyncio.ensure_future(end(stage, producer, commit=True))
        await some_retries()
        assert not answer.done()
        assert markers(stage, "one") == []
        stage.place(partition_of(stage, TRANSACTIONS_TOPIC), isr=(1,))
        assert await answer == ErrorCode.NONE
        assert markers(stage, "one") == [COMMIT_MARKER]

    stage.run(story())


def test_a_decision_that_cannot_be_journaled_leaves_the_transaction_open(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        stage.disk.fail("pwrite", errno.ENOSPC)
        assert await end(stage, producer, commit=True) == ErrorCode.NOT_COORDINATOR
        stage.disk.heal()
        assert state(stage) is State.ONGOING
        assert markers(stage, "one") == []
        assert await end(stage, producer, commit=False) == ErrorCode.NONE
        assert markers(stage, "one") == [ABORT_MARKER]

    stage.run(story())


def test_a_transaction_is_complete_when_its_markers_are_committed(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        stage.place(partition_of(stage, "two"), isr=(1, 2))
        assert await end(stage, producer, commit=True) == ErrorCode.NONE
        assert markers(stage, "two") == [COMMIT_MARKER]
        assert state(stage) is State.PREPARE_COMMIT
        stage.place(partition_of(stage, "two"), isr=(1,))
        assert state(stage) is State.COMPLETE_COMMIT

    stage.run(story())


def test_markers_are_not_repeated_while_the_completion_waits_for_its_replicas(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        stage.place(partition_of(stage, "two"), isr=(1, 2))
        assert await end(stage, producer, commit=True) == ErrorCode.NONE
        stage.place(partition_of(stage, TRANSACTIONS_TOPIC), isr=(1, 2))
        stage.place(partition_of(stage, "two"), isr=(1,))
        await some_retries()
        assert [markers(stage, topic) for topic in TOPICS] == [[COMMIT_MARKER], [COMMIT_MARKER]]

    stage.run(story())


# ---- failures


def test_a_marker_that_fails_is_written_again_and_only_that_one(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        move(stage, "two", leader=2)
        assert await end(stage, producer, commit=True) == ErrorCode.NONE
        await some_retries()
        assert state(stage) is State.PREPARE_COMMIT
        assert await end(stage, producer, commit=True) == ErrorCode.CONCURRENT_TRANSACTIONS
        move(stage, "two", leader=1)
        await until(lambda: state(stage) is State.COMPLETE_COMMIT)
        assert [markers(stage, topic) for topic in TOPICS] == [[COMMIT_MARKER], [COMMIT_MARKER]]

    stage.run(story())


def test_a_marker_that_is_not_committed_when_leadership_moves_is_written_again(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        stage.place(partition_of(stage, "two"), isr=(1, 2))
        assert await end(stage, producer, commit=True) == ErrorCode.NONE
        move(stage, "two", leader=2, isr=(1, 2))
        await some_retries()
        assert state(stage) is State.PREPARE_COMMIT
        move(stage, "two", leader=1)
        await until(lambda: state(stage) is State.COMPLETE_COMMIT)

    stage.run(story())


def test_a_partition_that_was_deleted_needs_no_marker(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        await stage.controller.delete_topics([TopicReference("two")])
        assert await end(stage, producer, commit=True) == ErrorCode.NONE
        assert state(stage) is State.COMPLETE_COMMIT

    stage.run(story())


def test_a_completion_that_cannot_be_journaled_is_tried_again(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        directory: Path = partition_of(stage, TRANSACTIONS_TOPIC).log.directory
        # The first write is the decision, the second the completion.
        stage.disk.fail("pwrite", errno.ENOSPC, below=directory, after=1)
        assert await end(stage, producer, commit=True) == ErrorCode.NONE
        await some_retries()
        assert state(stage) is State.PREPARE_COMMIT
        stage.disk.heal()
        await until(lambda: state(stage) is State.COMPLETE_COMMIT)

    stage.run(story())


# ---- partitions that other brokers lead


class Leader:
    """Broker 2, which leads a partition: it refuses the first marker, and takes the second."""

    def __init__(self) -> None:
        self.codes = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]
        self.requests: list[Any] = []

    async def send(self, broker_id: int, api_key: int, message: Any, **_: Any) -> Any:
        assert (broker_id, api_key) == (2, 27)
        self.requests.append(message)
        (marker,) = message.markers
        result = WritableTxnMarkerPartitionResult(partition_index=0, error_code=self.codes.pop(0))
        topic = WritableTxnMarkerTopicResult(name="two", partitions=[result])
        return WriteTxnMarkersResponse(
            markers=[WritableTxnMarkerResult(producer_id=marker.producer_id, topics=[topic])]
        )


def test_markers_go_to_the_leader_on_another_broker_until_it_has_them(stage: Any) -> None:
    async def story() -> None:
        stage.peers = Leader()
        producer = await begun(stage)
        stage.write(PartitionChangeRecord(stage.image.topic("two").id, 0, leader=2))
        assert await end(stage, producer, commit=True) == ErrorCode.NONE
        await until(lambda: state(stage) is State.COMPLETE_COMMIT)
        assert markers(stage, "one") == [COMMIT_MARKER]
        assert markers(stage, "two") == []
        assert len(stage.peers.requests) == 2
        marker = stage.peers.requests[0].markers[0]
        assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [("two", [0])]

    stage.run(story())


# ---- another coordinator


def test_a_new_coordinator_writes_the_markers_that_are_missing(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        move(stage, "two", leader=2)
        await end(stage, producer, commit=True)
        await stage.start_coordinators()
        move(stage, "two", leader=1)
        await until(lambda: not stage.transactions.is_loading)
        await until(lambda: state(stage) is State.COMPLETE_COMMIT)
        assert markers(stage, "two") == [COMMIT_MARKER]
        for topic in TOPICS:
            partition = partition_of(stage, topic)
            assert partition.last_stable_offset == partition.log.log_end_offset

    stage.run(story())


def test_a_coordinator_that_lost_its_partition_writes_no_more_markers(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        move(stage, "two", leader=2)
        await end(stage, producer, commit=True)
        move(stage, TRANSACTIONS_TOPIC, leader=2)
        await some_retries()
        move(stage, "two", leader=1)
        await some_retries()
        assert markers(stage, "two") == []
        assert await end(stage, producer, commit=True) == ErrorCode.NOT_COORDINATOR

    stage.run(story())


def test_a_marker_is_refused_by_a_shard_of_offsets_that_is_loading(stage: Any) -> None:
    async def story() -> None:
        ending = MarkersToWrite(ID, 5, 0, 0, True, frozenset(), 0)
        stage.append(OFFSETS_TOPIC)
        move(stage, OFFSETS_TOPIC)
        code = await stage.transactions.write_marker(TopicPartition(OFFSETS_TOPIC, 0), ending)
        assert code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert markers(stage, OFFSETS_TOPIC) == []

    stage.run(story())


def test_a_marker_is_refused_while_there_is_no_shard_of_offsets(stage: Any) -> None:
    """The partition has its leader before the coordinator has its shard. The sender tries again."""

    async def story() -> None:
        ending = MarkersToWrite(ID, 5, 0, 0, True, frozenset(), 0)
        del stage.groups._shards[0]
        code = await stage.transactions.write_marker(TopicPartition(OFFSETS_TOPIC, 0), ending)
        assert code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    stage.run(story())


# ---- markers of transaction version 2: the epoch rises with each end


def test_a_marker_of_version_2_needs_a_newer_epoch_than_the_records_it_ends(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        place = TopicPartition("one", 0)

        async def write(epoch: int) -> ErrorCode:
            ending = MarkersToWrite(ID, producer.id, epoch, 0, True, frozenset({place}), 2)
            code: ErrorCode = await stage.transactions.write_marker(place, ending)
            return code

        assert await write(producer.epoch) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await write(producer.epoch + 1) == ErrorCode.NONE
        assert await write(producer.epoch + 1) == ErrorCode.NONE
        assert markers(stage, "one") == [COMMIT_MARKER], "the same marker is not written twice"

    stage.run(story())


# ---- WriteTxnMarkers


def test_markers_of_the_same_producer_have_one_result(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        requested = [
            WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                transaction_result=True,
                topics=[WritableTxnMarkerTopic(name=name, partition_indexes=[0])],
            )
            for producer_id, name in ((producer.id, "one"), (999, "absent"), (producer.id, "two"))
        ]
        answer = await stage.answer(WriteTxnMarkersRequest(markers=requested), 1)
        results = [(each.producer_id, [topic.name for topic in each.topics]) for each in answer.markers]
        assert results == [(producer.id, ["one", "two"]), (999, ["absent"])]

    stage.run(story())


def test_write_txn_markers_is_answered_when_the_markers_are_committed(stage: Any) -> None:
    async def story() -> None:
        producer = await begun(stage)
        stage.place(partition_of(stage, "two"), isr=(1, 2))
        topics = [WritableTxnMarkerTopic(name=name, partition_indexes=[0, 0, 9]) for name in TOPICS]
        marker = WritableTxnMarker(
            producer_id=producer.id, producer_epoch=producer.epoch, transaction_result=True, topics=topics
        )
        answer = asyncio.ensure_future(stage.answer(WriteTxnMarkersRequest(markers=[marker]), 1))
        await some_retries()
        assert not answer.done()
        assert [markers(stage, topic) for topic in TOPICS] == [[COMMIT_MARKER], [COMMIT_MARKER]]
        stage.place(partition_of(stage, "two"), isr=(1,))
        for topic in (await answer).markers[0].topics:
            codes = [each.error_code for each in topic.partitions]
            assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    stage.run(story())
