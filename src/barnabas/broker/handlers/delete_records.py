"""DeleteRecords, key 21, versions 0-2: move the log start offset of partitions up.

Behaviour: -1 means the high watermark; an offset below the log start changes nothing and succeeds.
The answer's low watermark is the log start afterwards. The last offset counts where a partition is
repeated.
Not done:  waiting for followers' log starts, which comes with replication."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

NO_LOW_WATERMARK = -1


def delete_records(call: Call, request: DeleteRecordsRequest) -> Work[DeleteRecordsResponse]:
    asked: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        partitions = asked.setdefault(topic.name, {})
        for partition in topic.partitions:
            partitions[partition.partition_index] = partition
            yield
        yield
    response = DeleteRecordsResponse()
    for name, partitions in asked.items():
        result = DeleteRecordsTopicResult(name=name)
        for partition in partitions.values():
            result.partitions.append(_delete_guarded(call, name, partition))
            yield
        response.topics.append(result)
        yield
    return response


def _delete_guarded(call: Call, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=NO_LOW_WATERMARK
    )
    try:
        result.low_watermark = _delete(call, topic, asked)
    except KafkaError as error:
        result.error_code = error.code
    return result


def _delete(call: Call, topic: str, asked: DeleteRecordsPartition) -> int:
    if call.broker.image.partition(topic, asked.partition_index) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = call.broker.gate.to_delete_records(call.asker, topic, asked.partition_index)
    return partition.delete_records_before(asked.offset)
