"""Produce, key 0, versions 3-13: append batches to the partitions this broker leads.

Behaviour: acks 0 is never answered (an error closes the connection); 1 answers after the local
append; -1 once every in-sync replica has it, or with REQUEST_TIMED_OUT.
Versions:  v5 log_start_offset · v7 zstd · v8 record errors · v10 current leader · v12 a partition is added to
the producer's transaction by its first batch; before, the client had to add it · v13 topic ids.

Who may write where is decided by the gate (replication/gate.py). A request is carried out in turns of a few
milliseconds (broker/turns.py), and batches that expand to much are decompressed in a thread. The connection
waits meanwhile, so its batches keep their order."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeAlias

from barnabas.broker.call import Call
from barnabas.broker.leaders import endpoints_of, leader_of
from barnabas.broker.portions import drained
from barnabas.broker.transaction_verification import ensure_in_transaction
from barnabas.broker.turns import Work
from barnabas.coordination.step import Producer
from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.ids import TopicPartition
from barnabas.kernels.batches import CheckedBatch
from barnabas.records.batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    HEADER_SIZE,
    MAGIC,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
    read_header,
)
from barnabas.records.validation import ExpandsTooMuch, InvalidRecordError, validate
from barnabas.replication.gate import ACKS_ALL, ACKS_NONE
from barnabas.replication.partition import Partition
from barnabas.replication.waiters import all_reached
from barnabas.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

CURRENT_LEADER_VERSION_MIN = 10
ABORTABLE_VERSION_MIN = 11
IMPLICIT_ADD_VERSION_MIN = 12
TOPIC_ID_VERSION_MIN = 13
NO_COORDINATOR_NOW = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
# What the gate refuses because of the partition, not of the asker: a producer sends it again.
REFUSED_FOR_NOW = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER)
# The loop decompresses batches of up to this many bytes, and expands them to up to that many. What is beyond,
# a thread does.
LOOP_COMPRESSED_BYTES_MAX = 32 * 1024
LOOP_EXPANDED_BYTES_MAX = 256 * 1024

Answer: TypeAlias = ProduceResponse | Coroutine[Any, Any, ProduceResponse | None] | None


class Pending:
    """One partition's answer, and the offset that the ISR has to confirm under the same leader epoch."""

    __slots__ = ("is_committed", "leader_epoch", "partition", "required_offset", "response")

    def __init__(self, response: PartitionProduceResponse) -> None:
        self.response = response
        self.partition: Partition | None = None
        self.required_offset = self.leader_epoch = -1
        # A batch that was refused has nothing to wait for.
        self.is_committed = True

    def appended(self, partition: Partition, last_offset: int) -> None:
        self.partition, self.leader_epoch = partition, partition.leader_epoch
        self.required_offset = last_offset + 1
        self.is_committed = partition.high_watermark > last_offset

    def fail(self, code: ErrorCode) -> None:
        self.response.error_code, self.response.error_message = code, code.text


def produce(call: Call, request: ProduceRequest) -> Work[Answer]:
    response = ProduceResponse()
    pendings: list[Pending] = []
    for topic in drained(request.topic_data):
        name = _topic_name(call, topic)
        answered = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[])
        response.responses.append(answered)
        for data in topic.partition_data:
            if pendings:
                yield None
            pending = yield from _append_guarded(call, request, name, data)
            pendings.append(pending)
            answered.partition_responses.append(pending.response)
    if request.acks == ACKS_NONE:
        _answer_nothing(call, pendings)
        return None
    if any(pending.response.error_code for pending in pendings):
        _add_endpoints(call, response, pendings)
    if request.acks == ACKS_ALL and not all(pending.is_committed for pending in pendings):
        return _wait_committed(request, response, pendings)
    return response


def _append_guarded(
    call: Call, request: ProduceRequest, topic: str | None, data: PartitionProduceData
) -> Work[Pending]:
    """Here, and nowhere else in this file, a KafkaError becomes an error code."""
    response = PartitionProduceResponse(
        index=data.index, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1
    )
    pending = Pending(response)
    try:
        yield from _append(call, request, topic, data, pending)
    except InvalidRecordError as error:
        response.error_code, response.error_message = error.code, error.message
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in error.record_errors
        ]
    except KafkaError as error:
        response.error_code, response.error_message = error.code, error.message
        if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and topic is not None:
            leader, epoch = leader_of(call, topic, data.index)
            response.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
    partition = pending.partition or call.broker.replicas.get(topic or "", data.index)
    if partition is not None and response.error_code in REFUSED_FOR_NOW:
        _remember_refused(partition, data, error_of(response.error_code))
    counts = call.broker.unknown_requests if partition is None else partition.requests
    counts.produces += 1
    counts.failed_produces += response.error_code != 0
    return pending


def _remember_refused(partition: Partition, data: PartitionProduceData, code: ErrorCode) -> None:
    """What the producer has sent behind this batch must not be taken first, nor be called out of order."""
    if data.records is None or len(data.records) < HEADER_SIZE:
        return
    batch = read_header(data.records)
    if batch.magic == MAGIC and batch.base_sequence > NO_SEQUENCE:
        partition.log.producers.refuse(batch, code)


def _append(
    call: Call, request: ProduceRequest, topic: str | None, data: PartitionProduceData, pending: Pending
) -> Work[None]:
    """From the last pause on this runs in one turn: nothing may come between verifying and appending."""
    gate, asker = call.broker.gate, call.asker
    permit = gate.to_write(asker, topic, data.index, request.acks)
    records = data.records if data.records is not None else memoryview(b"")
    codec = records[ATTRIBUTES_POSITION + 1] & COMPRESSION_MASK if len(records) >= HEADER_SIZE else 0
    gate.check_codec(asker, codec)
    rules, now_ms = permit.partition.rules, call.broker.clock.now_ms()
    try:
        if codec and len(records) > LOOP_COMPRESSED_BYTES_MAX:
            raise ExpandsTooMuch
        batch = validate(records, rules, now_ms, LOOP_EXPANDED_BYTES_MAX)
    except ExpandsTooMuch:
        batch = yield partial(validate, records, rules, now_ms)
        permit = gate.to_write(asker, topic, data.index, request.acks)
    partition: Partition = permit.partition
    if batch.attributes & TRANSACTIONAL_FLAG:
        yield from _verify_transaction(call, request, partition, batch)
        # Something may have changed while the coordinator was asked.
        partition = gate.to_write(asker, topic, data.index, request.acks).partition
    result = partition.append(batch)
    response = pending.response
    response.base_offset = result.first_offset
    response.log_append_time_ms = result.log_append_time
    response.log_start_offset = result.log_start_offset
    pending.appended(partition, result.last_offset)


def _verify_transaction(
    call: Call, request: ProduceRequest, partition: Partition, batch: CheckedBatch
) -> Work[None]:
    producer = Producer(batch.producer_id, batch.producer_epoch)
    place: TopicPartition = partition.topic_partition
    adds = call.version >= IMPLICIT_ADD_VERSION_MIN
    try:
        yield from ensure_in_transaction(call.broker, request.transactional_id, producer, place, adds=adds)
    except KafkaError as error:
        raise KafkaError(_known_to_producers(error.code, call.version), error.message) from error
    if adds and producer.id not in partition.log.producers.entries and batch.base_sequence != 0:
        # Sequences begin at 0 with each epoch, so an earlier batch is missing. This says nothing about older
        # clients: the partition may have forgotten their producers.
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer.id} is new to {place}: expected sequence 0, got {batch.base_sequence}",
        )


def _known_to_producers(code: ErrorCode, version: int) -> ErrorCode:
    """The error that makes a producer of that version do the right thing."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_VERSION_MIN:
        return ErrorCode.INVALID_TXN_STATE
    waits = code in NO_COORDINATOR_NOW
    if waits or (code == ErrorCode.CONCURRENT_TRANSACTIONS and version < IMPLICIT_ADD_VERSION_MIN):
        # Older producers do not retry these errors, but they do retry this one.
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code


async def _wait_committed(
    request: ProduceRequest, response: ProduceResponse, pendings: list[Pending]
) -> ProduceResponse:
    waiting: list[tuple[Pending, Partition]] = []
    for pending in pendings:
        partition = pending.partition
        if partition is None or pending.is_committed:
            continue
        if not partition.is_leader or partition.leader_epoch != pending.leader_epoch:
            pending.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif partition.high_watermark < pending.required_offset:
            waiting.append((pending, partition))
    places = [(partition.committed, pending.required_offset) for pending, partition in waiting]
    outcomes = await all_reached(places, request.timeout_ms / 1000)
    for (pending, partition), is_reached in zip(waiting, outcomes, strict=True):
        if is_reached is None:
            pending.fail(ErrorCode.REQUEST_TIMED_OUT)
        elif not is_reached:
            pending.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif partition.has_lost_in_sync:
            pending.fail(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    return response


def _add_endpoints(call: Call, response: ProduceResponse, pendings: list[Pending]) -> None:
    """Say where the leaders in this answer are, so that the client need not ask."""
    leaders = {pending.response.current_leader.leader_id for pending in pendings} - {-1}
    if leaders and call.version >= CURRENT_LEADER_VERSION_MIN:
        response.node_endpoints = [
            NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in endpoints_of(call, leaders)
        ]


def _answer_nothing(call: Call, pendings: list[Pending]) -> None:
    """acks=0 has no reply to carry an error; a closed connection makes the client refresh its metadata."""
    if any(pending.response.error_code for pending in pendings):
        call.connection.close()


def _topic_name(call: Call, topic: TopicProduceData) -> str | None:
    if call.version < TOPIC_ID_VERSION_MIN:
        return topic.name
    image = call.broker.image.topic_by_id(topic.topic_id)
    return None if image is None else image.name
