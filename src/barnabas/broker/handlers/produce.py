"""Produce, key 0, versions 3-13: append batches to the partitions this broker leads.

Behaviour: acks 0 is never answered (an error closes the connection); 1 answers after the local
append; -1 once every in-sync replica has it, or with REQUEST_TIMED_OUT.
Versions:  v5 log_start_offset · v7 zstd · v8 record errors · v10 current leader · v12 a partition is
added to the producer's transaction by itself; before, it must have been added · v13 topic ids."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeAlias

from barnabas.broker.call import Call
from barnabas.broker.leaders import endpoints_of, leader_of
from barnabas.broker.transaction_verification import ensure_in_transaction
from barnabas.coordination.step import Producer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import INTERNAL_TOPICS, TopicPartition
from barnabas.records.batch import ATTRIBUTES_POSITION, COMPRESSION_MASK, HEADER_SIZE, TRANSACTIONAL_FLAG
from barnabas.records.compression import ZSTD
from barnabas.records.validation import (
    BatchRules,
    CheckedBatch,
    InvalidRecordError,
    needs_decompression,
    validate,
)
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

# Under this name tools may write to internal topics, as in Kafka.
ADMIN_CLIENT_ID = "__admin_client"
ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
ZSTD_VERSION_MIN = 7
CURRENT_LEADER_VERSION_MIN = 10
ABORTABLE_VERSION_MIN = 11
IMPLICIT_ADD_VERSION_MIN = 12
TOPIC_ID_VERSION_MIN = 13
NO_COORDINATOR_NOW = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
# A compressed batch at least this large is decompressed for validation in a thread, not on the loop.
THREAD_BYTES_MIN = 32 * 1024

# What a thread made of a partition's records, by their place in the request.
Checked: TypeAlias = Mapping[tuple[int, int], CheckedBatch | KafkaError]
Answer: TypeAlias = ProduceResponse | Coroutine[Any, Any, ProduceResponse | None] | None


class Pending:
    """One partition's answer, and the offset it waits for where the ISR has not confirmed it yet."""

    __slots__ = ("partition", "required_offset", "response")

    def __init__(self, response: PartitionProduceResponse) -> None:
        self.response = response
        self.partition: Partition | None = None
        self.required_offset = -1

    @property
    def is_committed(self) -> bool:
        return self.partition is None or self.partition.high_watermark >= self.required_offset


def produce(call: Call, request: ProduceRequest) -> Answer:
    large = _large_compressed(call, request)
    return _check_in_threads(call, request, large) if large else _append_all(call, request, {})


def _append_all(call: Call, request: ProduceRequest, checked: Checked) -> Answer:
    """The ordered stage: no await, so that batches of one connection keep their order."""
    response = ProduceResponse()
    pendings: list[Pending] = []
    for topic_place, topic in enumerate(request.topic_data):
        name = _topic_name(call, topic)
        answers = []
        for place, data in enumerate(topic.partition_data):
            pending = _append_guarded(call, request, name, data, checked.get((topic_place, place)))
            pendings.append(pending)
            answers.append(pending.response)
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )
    if request.acks == ACKS_NONE:
        _answer_nothing(call, pendings)
        return None
    if any(pending.response.error_code for pending in pendings):
        _add_endpoints(call, response, pendings)
    if request.acks == ACKS_ALL and not all(pending.is_committed for pending in pendings):
        return _wait_committed(request, response, pendings)
    return response


def _append_guarded(
    call: Call,
    request: ProduceRequest,
    topic: str | None,
    data: PartitionProduceData,
    checked: CheckedBatch | KafkaError | None,
) -> Pending:
    """KafkaError -> error code: the only place of this file where one becomes the other."""
    response = PartitionProduceResponse(
        index=data.index, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1
    )
    pending = Pending(response)
    try:
        _append(call, request, topic, data, checked, pending)
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
    counts = call.broker.unknown_requests if partition is None else partition.requests
    counts.produces += 1
    counts.failed_produces += response.error_code != 0
    return pending


def _append(
    call: Call,
    request: ProduceRequest,
    topic: str | None,
    data: PartitionProduceData,
    checked: CheckedBatch | KafkaError | None,
    pending: Pending,
) -> None:
    if request.acks not in (ACKS_ALL, ACKS_LEADER, ACKS_NONE):
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if topic in INTERNAL_TOPICS and call.header.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is for coordinators to write to")
    partition = call.broker.replicas.leader(topic, data.index)
    if request.acks == ACKS_ALL:
        partition.check_enough_in_sync()
    if checked is None:
        records = data.records if data.records is not None else memoryview(b"")
        _check_version(call, records)
        checked = validate(records, partition.rules, call.broker.clock.now_ms())
    elif isinstance(checked, KafkaError):
        raise checked
    if checked.attributes & TRANSACTIONAL_FLAG:
        _check_transaction(call, request, TopicPartition(topic, data.index), checked)
    result = partition.append(checked)
    response = pending.response
    response.base_offset = result.first_offset
    response.log_append_time_ms = result.log_append_time
    response.log_start_offset = result.log_start_offset
    pending.partition, pending.required_offset = partition, result.last_offset + 1


def _check_version(call: Call, records: memoryview) -> None:
    """Refuse what this version of the request, or this broker, cannot carry."""
    if len(records) < HEADER_SIZE:
        return
    attributes = records[ATTRIBUTES_POSITION + 1]
    if attributes & COMPRESSION_MASK == ZSTD and call.version < ZSTD_VERSION_MIN:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce version {ZSTD_VERSION_MIN} or newer"
        )


def _check_transaction(
    call: Call, request: ProduceRequest, place: TopicPartition, checked: CheckedBatch
) -> None:
    producer = Producer(checked.producer_id, checked.producer_epoch)
    adds = call.version >= IMPLICIT_ADD_VERSION_MIN
    try:
        ensure_in_transaction(call.broker, request.transactional_id, producer, place, adds=adds)
    except KafkaError as error:
        raise KafkaError(_known_to_producers(error.code, call.version), error.message) from error
    known = call.broker.replicas.leader(*place).log.producers.entries
    if adds and producer.id not in known and checked.base_sequence != 0:
        # Sequences begin with each epoch, so here something was overtaken by what came after it. Of older
        # clients nothing can be said: the partition may have forgotten them.
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer.id} is new to {place} and sent sequence {checked.base_sequence}; "
            "0 was to come",
        )


def _known_to_producers(code: ErrorCode, version: int) -> ErrorCode:
    """What a producer of that version does the right thing with."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_VERSION_MIN:
        return ErrorCode.INVALID_TXN_STATE
    waits = code in NO_COORDINATOR_NOW
    if waits or (code == ErrorCode.CONCURRENT_TRANSACTIONS and version < IMPLICIT_ADD_VERSION_MIN):
        # Older producers do not retry these; this one they do.
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code


def _large_compressed(
    call: Call, request: ProduceRequest
) -> list[tuple[tuple[int, int], memoryview, BatchRules]]:
    """The batches whose validation would hold up the loop; those that will be refused anyway are left out."""
    large = []
    for topic_place, topic in enumerate(request.topic_data):
        for place, data in enumerate(topic.partition_data):
            if data.records is None or len(data.records) < THREAD_BYTES_MIN:
                continue
            partition = call.broker.replicas.get(_topic_name(call, topic) or "", data.index)
            if (
                partition is not None
                and needs_decompression(data.records, partition.rules) >= THREAD_BYTES_MIN
            ):
                large.append(((topic_place, place), data.records, partition.rules))
    return large


async def _check_in_threads(
    call: Call, request: ProduceRequest, large: list[tuple[tuple[int, int], memoryview, BatchRules]]
) -> ProduceResponse | None:
    checked = {}
    for place, records, rules in large:
        checked[place] = await asyncio.to_thread(_check, call, records, rules)
    answer = _append_all(call, request, checked)
    return answer if answer is None or isinstance(answer, ProduceResponse) else await answer


def _check(call: Call, records: memoryview, rules: BatchRules) -> CheckedBatch | KafkaError:
    try:
        _check_version(call, records)
        return validate(records, rules, call.broker.clock.now_ms())
    except KafkaError as error:
        return error


async def _wait_committed(
    request: ProduceRequest, response: ProduceResponse, pendings: list[Pending]
) -> ProduceResponse:
    open_pendings = [
        (pending.partition.committed, pending.required_offset)
        for pending in pendings
        if pending.partition is not None and not pending.is_committed
    ]
    await all_reached(open_pendings, request.timeout_ms / 1000)
    for pending in pendings:
        if not pending.is_committed:
            assert pending.partition is not None
            lost = not pending.partition.is_leader
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER if lost else ErrorCode.REQUEST_TIMED_OUT
            pending.response.error_code, pending.response.error_message = code, code.text
    return response


def _add_endpoints(call: Call, response: ProduceResponse, pendings: list[Pending]) -> None:
    """Tell where the leaders named in this answer are, so that the client need not ask."""
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
    found = call.broker.image.topic_by_id(topic.topic_id)
    return found.name if found is not None else None
