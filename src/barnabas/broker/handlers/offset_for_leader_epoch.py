"""OffsetForLeaderEpoch, key 23, versions 2-4: where an epoch ended, so that a client sees a truncation.

Behaviour: only the leader answers; an unknown epoch is -1, one below the log start is the log start.
           The replica id of the request changes nothing."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.portions import drained_items, last_of_each
from barnabas.broker.turns import Work
from barnabas.errors import KafkaError
from barnabas.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def offset_for_leader_epoch(
    call: Call, request: OffsetForLeaderEpochRequest
) -> Work[OffsetForLeaderEpochResponse]:
    """A partition that is repeated is answered once, for the last of its requests, as in Kafka."""
    requested = yield from last_of_each(request.topics, "topic", "partition")
    response = OffsetForLeaderEpochResponse()
    for name, partitions in drained_items(requested):
        result = OffsetForLeaderTopicResult(topic=name)
        for partition in partitions.values():
            result.partitions.append(_end_offset(call, name, partition))
            yield
        response.topics.append(result)
        yield
    return response


def _end_offset(call: Call, topic: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=requested.partition, leader_epoch=-1, end_offset=-1)
    try:
        partition = call.broker.gate.to_describe(
            call.asker, topic, requested.partition, requested.current_leader_epoch
        )
        answer.leader_epoch, answer.end_offset = call.broker.gate.epoch_end(partition, requested.leader_epoch)
    except KafkaError as error:
        answer.error_code = error.code
    return answer
