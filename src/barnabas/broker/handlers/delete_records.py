"""DeleteRecords, key 21, versions 0-2: move the log start offset of partitions up.

Behaviour: -1 means the high watermark; an offset below the log start changes nothing and succeeds.
The answer comes when the followers whose brokers live have moved their log starts too, or with
REQUEST_TIMED_OUT. The answer's low watermark is the lowest log start. The last offset counts where a
partition is repeated."""

from __future__ import annotations

from typing import Any, NamedTuple

from barnabas.broker.call import Call
from barnabas.broker.portions import drained_items, last_of_each
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.replication.leading import Leading
from barnabas.replication.partition import Partition
from barnabas.replication.waiters import all_reached
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

NO_LOW_WATERMARK = -1


class _Pending(NamedTuple):
    """A partition whose followers have not moved their log starts up to `offset` yet."""

    result: DeleteRecordsPartitionResult
    partition: Partition
    leading: Leading
    offset: int

    @property
    def is_over(self) -> bool:
        """Whether the leadership has ended since, or all followers have moved. Nobody would end the wait."""
        return self.partition.leading is not self.leading or self.leading.low_watermark >= self.offset


def delete_records(call: Call, request: DeleteRecordsRequest) -> Work[Any]:
    requested = yield from last_of_each(request.topics, "name", "partition_index")
    response = DeleteRecordsResponse()
    pending: list[_Pending] = []
    for name, partitions in drained_items(requested):
        result = DeleteRecordsTopicResult(name=name)
        for partition in partitions.values():
            result.partitions.append(_delete_guarded(call, name, partition, pending))
            yield
        response.topics.append(result)
        yield
    return _wait_for_followers(request, response, pending) if pending else response


def _delete_guarded(
    call: Call, topic: str, requested: DeleteRecordsPartition, pending: list[_Pending]
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(
        partition_index=requested.partition_index, low_watermark=NO_LOW_WATERMARK
    )
    try:
        partition = _partition(call, topic, requested)
        start = partition.delete_records_before(requested.offset)
    except KafkaError as error:
        result.error_code = error.code
        return result
    leading = partition.leading
    result.low_watermark = start if leading is None else leading.low_watermark
    if leading is not None and result.low_watermark < start:
        pending.append(_Pending(result, partition, leading, start))
    return result


def _partition(call: Call, topic: str, requested: DeleteRecordsPartition) -> Partition:
    if call.broker.image.partition(topic, requested.partition_index) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return call.broker.gate.to_delete_records(call.asker, topic, requested.partition_index)


async def _wait_for_followers(
    request: DeleteRecordsRequest, response: DeleteRecordsResponse, pending: list[_Pending]
) -> DeleteRecordsResponse:
    places = [(each.leading.deleted, each.offset) for each in pending if not each.is_over]
    await all_reached(places, request.timeout_ms / 1000)
    for each in pending:
        each.result.low_watermark = each.leading.low_watermark
        if each.partition.leading is not each.leading:
            _fail(each.result, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif each.result.low_watermark < each.offset:
            _fail(each.result, ErrorCode.REQUEST_TIMED_OUT)
    return response


def _fail(result: DeleteRecordsPartitionResult, code: ErrorCode) -> None:
    result.error_code, result.low_watermark = code, NO_LOW_WATERMARK
