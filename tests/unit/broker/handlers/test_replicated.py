"""What a leader with a follower answers to the follower and to clients."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from tests.unit.broker.conftest import MakeStage, Stage

from barnabas.broker.call import Call, Encoded
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.handlers.fetch import fetch
from barnabas.broker.later import Later
from barnabas.broker.session import Session
from barnabas.errors import ErrorCode
from barnabas.metadata.records import BrokerRecord, Listener, PartitionChangeRecord
from barnabas.replication.partition import Partition
from barnabas.wire.codec import RequestHeader, decode_response, encode_response
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

ME, OTHER = 1, 2
OTHER_EPOCH = 77
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def replicated(stage: Stage) -> Partition:
    """A partition led here, with a follower in rack-b that is in sync."""
    stage.create("topic")
    stage.fetch_sessions = FetchSessions(stage.clock, 10, 0)  # type: ignore[attr-defined]
    listener = Listener("PLAINTEXT", "127.0.0.1", 9093)
    topic = stage.image.topics["topic"]
    old = stage.image
    stage.write(
        BrokerRecord(OTHER, OTHER_EPOCH, b"o" * 16, (listener,), "rack-b"),
        PartitionChangeRecord(topic.id, 0, isr=(ME, OTHER), replicas=(ME, OTHER)),
    )
    stage.replicas.follow(stage.image, stage.image.difference(old))
    return stage.replicas.leader("topic", 0)


@pytest.fixture
def partition(stage: Stage) -> Partition:
    return replicated(stage)


class Connection:
    when_abandoned: Any = None


class Replica:
    """The follower: fetches without a session, and keeps nothing."""

    def __init__(self, stage: Stage, broker_epoch: int = OTHER_EPOCH, replica_id: int = OTHER) -> None:
        self.stage, self.state = stage, ReplicaState(replica_id=replica_id, replica_epoch=broker_epoch)

    def request(self, offset: int, log_start: int = 0, wait_ms: int = 0) -> FetchRequest:
        part = FetchPartition(
            partition=0,
            current_leader_epoch=self.stage.replicas.leader("topic", 0).leader_epoch,
            fetch_offset=offset,
            log_start_offset=log_start,
            partition_max_bytes=1 << 20,
        )
        topic = FetchTopic(topic_id=self.stage.image.topics["topic"].id, partitions=[part])
        return FetchRequest(
            replica_state=self.state,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[topic],
        )

    def start(self, request: FetchRequest, version: int = 17) -> Any:
        header = RequestHeader(1, version, 7, "broker-2")
        call = Call(self.stage, Connection(), Session(self.stage.config.listeners[0], ""), header)  # type: ignore[arg-type]
        return fetch(call, request)

    def fetch(self, offset: int, log_start: int = 0) -> Any:
        """The partition in the answer."""
        answer = decoded(self.start(self.request(offset, log_start)))
        assert answer.error_code == ErrorCode.NONE
        return answer.responses[0].partitions[0]


def decoded(answer: Any) -> Any:
    if not isinstance(answer, Encoded):
        return answer
    frame = b""
    for chunk in answer.chunks:
        if hasattr(chunk, "file"):
            with open(chunk.file.fileno(), "rb", closefd=False) as file:
                file.seek(chunk.position)
                frame += file.read(chunk.size)
            chunk.release()
        else:
            frame += bytes(chunk)
    return decode_response(1, 17, frame[4:])[1]


def test_a_replica_reads_what_is_not_committed_yet_and_commits_it_by_fetching_on(
    stage: Stage, partition: Partition
) -> None:
    stage.append("topic", 3)
    replica = Replica(stage)
    answer = replica.fetch(0)
    assert (len(answer.records) > 0, answer.high_watermark, partition.high_watermark) == (True, 0, 0)
    answer = replica.fetch(3)
    assert (len(answer.records), answer.high_watermark, partition.high_watermark) == (0, 3, 3)
    assert partition.requests.fetches == 0, "only clients are counted"


def test_an_append_answers_a_replica_that_waits(stage: Stage, partition: Partition) -> None:
    async def story() -> Any:
        waiting = Replica(stage).start(Replica(stage).request(0, wait_ms=60_000))
        assert isinstance(waiting, Later)
        stage.append("topic")
        return decoded(await asyncio.wait_for(waiting, 5))

    assert len(stage.run(story()).responses[0].partitions[0].records) > 0


@pytest.mark.parametrize(
    ("replica_id", "epoch", "code"),
    [
        (9, OTHER_EPOCH, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (OTHER, OTHER_EPOCH - 1, ErrorCode.STALE_BROKER_EPOCH),
        (OTHER, -1, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_a_client_cannot_claim_to_be_a_replica(
    stage: Stage, partition: Partition, replica_id: int, epoch: int, code: ErrorCode
) -> None:
    stage.append("topic")
    impostor = Replica(stage, epoch, replica_id)
    assert impostor.start(impostor.request(1)).error_code == code
    assert partition.high_watermark == 0


def test_a_broker_without_a_replica_of_the_partition_is_refused(stage: Stage, partition: Partition) -> None:
    stage.append("topic")
    me = Replica(stage, stage.image.brokers[ME].epoch, ME)
    assert me.fetch(1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert partition.high_watermark == 0


def test_a_replica_that_does_not_say_whom_it_follows_does_not_count(
    stage: Stage, partition: Partition
) -> None:
    stage.append("topic")
    replica = Replica(stage)
    request = replica.request(1)
    request.topics[0].partitions[0].current_leader_epoch = -1
    answer = replica.start(request).responses[0].partitions[0]
    assert answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert partition.high_watermark == 0


def test_a_throttled_follower_gets_no_records_but_is_not_refused(stage: Stage, partition: Partition) -> None:
    stage.append("topic", 3)
    stage.place(partition, isr=(ME,), replicas=(ME, OTHER), partition_epoch=9)
    config = dataclasses.replace(partition.log.config, leader_replication_throttled_replicas=("*",))
    partition.update_config(config)
    throttle = stage.replicas.surroundings.throttle
    throttle.bytes_per_second = 1
    replica = Replica(stage)
    assert len(replica.fetch(0).records) > 0, "the limit is exceeded only now"
    answer = replica.fetch(0)
    assert (answer.error_code, len(answer.records)) == (ErrorCode.NONE, 0)
    stage.place(partition, isr=(ME, OTHER), replicas=(ME, OTHER), partition_epoch=10)
    assert len(replica.fetch(0).records) > 0


def latest(stage: Stage, version: int = 7, replica_id: int = -1) -> tuple[int, int]:
    part = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    topic = ListOffsetsTopic(name="topic", partitions=[part])
    answer = stage.ask(ListOffsetsRequest(replica_id=replica_id, topics=[topic]), version)
    (result,) = answer.topics[0].partitions
    return result.error_code, result.offset


def test_a_new_leader_does_not_know_the_end_before_its_watermark_is_there(
    stage: Stage, partition: Partition
) -> None:
    """KIP-207: an earlier leader may have told clients a later end than the high watermark here."""
    stage.append("topic", 3)
    stage.place(partition, isr=(ME, OTHER), leader_epoch=5, partition_epoch=5)
    assert latest(stage) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert latest(stage, version=4) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert latest(stage, replica_id=OTHER) == (ErrorCode.NONE, 3)
    Replica(stage).fetch(3)
    assert latest(stage) == (ErrorCode.NONE, 3)


def test_any_replica_tells_tools_where_its_own_log_ends(stage: Stage, partition: Partition) -> None:
    """With the replica id -2, as in Kafka; others are sent to the leader."""
    stage.append("topic", 3)
    assert latest(stage) == (ErrorCode.NONE, 0)
    assert latest(stage, replica_id=-2) == (ErrorCode.NONE, 3)
    stage.place(partition, isr=(ME, OTHER), leader=OTHER, leader_epoch=5, partition_epoch=5)
    assert latest(stage) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert latest(stage, replica_id=-2) == (ErrorCode.NONE, 3)


def delete(stage: Stage, offset: int, *meanwhile: Any, timeout_ms: int = 60_000) -> tuple[int, int]:
    async def story() -> Any:
        topic = DeleteRecordsTopic(
            name="topic", partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
        )
        asking = asyncio.create_task(
            stage.answer(DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms), 2)
        )
        await asyncio.sleep(0)
        for function in meanwhile:
            assert not asking.done()
            function()
            await asyncio.sleep(0)
        return await asking

    (result,) = stage.run(story()).topics[0].partitions
    return result.error_code, result.low_watermark


def test_deleting_waits_for_the_log_start_of_the_follower(stage: Stage, partition: Partition) -> None:
    stage.append("topic", 3)
    replica = Replica(stage)
    replica.fetch(3)
    followed = [lambda: replica.fetch(3, log_start=0), lambda: replica.fetch(3, log_start=2)]
    assert delete(stage, 2, *followed) == (ErrorCode.NONE, 2)


def test_deleting_gives_up_after_the_timeout_of_the_request(stage: Stage, partition: Partition) -> None:
    stage.append("topic", 3)
    Replica(stage).fetch(3)
    assert delete(stage, 2, timeout_ms=10) == (ErrorCode.REQUEST_TIMED_OUT, -1)


def test_deleting_fails_when_another_broker_leads(stage: Stage, partition: Partition) -> None:
    stage.append("topic", 3)
    Replica(stage).fetch(3)

    def moved() -> None:
        stage.place(partition, isr=(ME, OTHER), leader=OTHER, leader_epoch=5, partition_epoch=5)

    assert delete(stage, 2, moved) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


# ---- reading from the nearest replica


def consume(stage: Stage, rack: str, offset: int = 0, version: int = 11) -> Any:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = FetchTopic(
        topic="topic",
        topic_id=stage.image.topics["topic"].id if version > 12 else bytes(16),
        partitions=[part],
    )
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic])
    request.rack_id = rack
    header = RequestHeader(1, version, 7, "tests")
    call = Call(stage, Connection(), Session(stage.config.listeners[0], ""), header)  # type: ignore[arg-type]
    answer: Any = fetch(call, request)
    if isinstance(answer, Encoded):
        return None
    frame = b"".join(bytes(chunk) for chunk in encode_response(1, version, 7, answer))
    return decode_response(1, version, frame[4:])[1].responses[0].partitions[0]


def test_a_consumer_is_sent_to_the_replica_in_its_rack(make_stage: MakeStage) -> None:
    stage = make_stage(replica_selector_class=RACK_AWARE)
    partition = replicated(stage)
    stage.append("topic", 3)
    Replica(stage).fetch(3)
    sent = consume(stage, "rack-b")
    assert (sent.preferred_read_replica, sent.high_watermark, len(sent.records)) == (OTHER, 3, 0)
    assert consume(stage, "rack-a") is None, "the leader is in its rack"
    assert consume(stage, "rack-z") is None, "no replica is in its rack"
    assert consume(stage, "") is None
    stage.append("topic", 1)
    assert consume(stage, "rack-b", offset=4).preferred_read_replica == -1, "the follower does not have it"
    stage.place(partition, isr=(ME,), replicas=(ME, OTHER), partition_epoch=9)
    assert consume(stage, "rack-b") is None, "only replicas in sync count"


def test_without_a_selector_everybody_reads_from_the_leader(stage: Stage, partition: Partition) -> None:
    stage.append("topic", 3)
    Replica(stage).fetch(3)
    assert consume(stage, "rack-b") is None
