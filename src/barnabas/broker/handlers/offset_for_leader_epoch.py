"""OffsetForLeaderEpoch, key 23, versions 2-4: where an epoch ended, so that a client sees a truncation.

Behaviour: only the leader answers; an epoch nobody knows is -1, one below the log start is the log start.
Not done:  the fence on replica ids, which comes with replication."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import KafkaError
from barnabas.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)


def offset_for_leader_epoch(call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            answer = EpochEndOffset(partition=asked.partition, leader_epoch=-1, end_offset=-1)
            try:
                partition = call.broker.replicas.leader(topic.topic, asked.partition)
                partition.check_epoch(asked.current_leader_epoch)
                answer.leader_epoch, answer.end_offset = partition.log.end_offset_for_epoch(
                    asked.leader_epoch
                )
            except KafkaError as error:
                answer.error_code = error.code
            answers.append(answer)
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return response
