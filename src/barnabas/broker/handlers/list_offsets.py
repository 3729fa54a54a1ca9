"""ListOffsets, key 2, versions 1-11: the offset at an end of the log, or of the first record at a time.

Behaviour: -1 the end (the last stable offset under read_committed), -2 the start, -3 the record with
the largest timestamp, -4 the local start, -5 the tiered end, -6 the earliest not tiered yet; without
tiers -4 and -6 are the start and -5 is nothing. The epoch in the answer is the record's, never the current
one. A replica (replica_id >= 0) gets the end of the log as the end. A partition that is repeated gets one
answer, INVALID_REQUEST, as in Kafka.
A leader whose high watermark has not reached the start of its epoch yet does not know the end (KIP-207):
OFFSET_NOT_AVAILABLE, before v5 LEADER_NOT_AVAILABLE. For a replica (replica_id >= 0) the end is the log's.
With replica_id -2 a follower answers too, for its own log: tools compare replicas this way.
Versions:  v2 isolation level · v4 leader epochs · v7 -3 · v8 -4 · v9 -5 · v10 timeout · v11 -6."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.portions import drained, drained_items
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.replication.gate import NO_REPLICA
from barnabas.replication.partition import Partition
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
VERSION_MIN = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
READ_COMMITTED = 1
DEBUGGING = -2
OFFSET_NOT_AVAILABLE_VERSION_MIN = 5


def list_offsets(call: Call, request: ListOffsetsRequest) -> Work[ListOffsetsResponse]:
    requested: dict[str, dict[int, ListOffsetsPartition | None]] = {}
    for topic in drained(request.topics):
        partitions = requested.setdefault(topic.name, {})
        for part in topic.partitions:
            index = part.partition_index
            # None where a partition is repeated.
            partitions[index] = None if index in partitions else part
            yield
        yield
    response = ListOffsetsResponse()
    for name, partitions in drained_items(requested):
        result = ListOffsetsTopicResponse(name=name)
        for index, once in partitions.items():
            result.partitions.append(_answered(call, request, name, index, once))
            yield
        response.topics.append(result)
        yield
    return response


def _answered(
    call: Call, request: ListOffsetsRequest, topic: str, index: int, requested: ListOffsetsPartition | None
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(partition_index=index, timestamp=-1, offset=-1, leader_epoch=-1)
    try:
        if requested is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        _find(call, request, topic, requested, answer)
    except KafkaError as error:
        answer.error_code = error.code
    return answer


def _find(
    call: Call,
    request: ListOffsetsRequest,
    topic: str,
    requested: ListOffsetsPartition,
    answer: ListOffsetsPartitionResponse,
) -> None:
    if call.version < VERSION_MIN.get(requested.timestamp, 0) or requested.timestamp < EARLIEST_PENDING:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    look_up = call.broker.gate.to_inspect if request.replica_id == DEBUGGING else call.broker.gate.to_describe
    partition = look_up(call.asker, topic, requested.partition_index, requested.current_leader_epoch)
    end = _end(partition, request)
    if requested.timestamp == LATEST:
        _check_end_is_known(partition, request, call.version)
        answer.offset, answer.leader_epoch = end, partition.log.leader_epochs.latest
    elif requested.timestamp in (EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING):
        answer.offset = partition.log.log_start_offset
        answer.leader_epoch = partition.log.epoch_at(answer.offset)
    elif requested.timestamp != LATEST_TIERED:
        _find_record(partition, requested.timestamp, end, answer)
        if answer.offset < 0:
            # The record may be one that is committed, but that this leader does not know to be.
            _check_end_is_known(partition, request, call.version)


def _end(partition: Partition, request: ListOffsetsRequest) -> int:
    if request.replica_id != NO_REPLICA:
        # A follower asks where the leader's log ends, not what is committed.
        return partition.log.log_end_offset
    if request.isolation_level == READ_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark


def _check_end_is_known(partition: Partition, request: ListOffsetsRequest, version: int) -> None:
    if request.replica_id == NO_REPLICA and not partition.knows_high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE
            if version >= OFFSET_NOT_AVAILABLE_VERSION_MIN
            else ErrorCode.LEADER_NOT_AVAILABLE
        )


def _find_record(
    partition: Partition, timestamp: int, end: int, answer: ListOffsetsPartitionResponse
) -> None:
    if timestamp == MAX_TIMESTAMP:
        record = partition.log.max_timestamp_offset()
    else:
        record = partition.log.offset_for_timestamp(timestamp)
    if record is not None and record.offset < end:
        answer.timestamp, answer.offset = record.timestamp, record.offset
        answer.leader_epoch = record.leader_epoch
