"""ListPartitionReassignments, key 46, version 0: which partitions are moving between brokers.

Behaviour: null topics mean all. Partitions that do not move are left out, also unknown ones, and topics
without any that moves. A partition that is named twice is listed once."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def list_partition_reassignments(
    call: Call, request: ListPartitionReassignmentsRequest
) -> Work[ListPartitionReassignmentsResponse]:
    image = call.broker.image
    response = ListPartitionReassignmentsResponse(error_message=None)
    moving: dict[str, dict[int, OngoingPartitionReassignment]] = {}
    for name, index in _partitions(image, request.topics):
        yield
        partition = image.partition(name, index)
        if partition is not None and partition.is_reassigning:
            moving.setdefault(name, {})[index] = OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
    for name, partitions in moving.items():
        yield
        response.topics.append(OngoingTopicReassignment(name=name, partitions=list(partitions.values())))
    return response


def _partitions(
    image: MetadataImage, topics: list[ListPartitionReassignmentsTopics] | None
) -> Iterable[tuple[str, int]]:
    if topics is None:
        return (
            (topic.name, index) for topic in image.topics.values() for index in range(len(topic.partitions))
        )
    return ((topic.name, index) for topic in topics for index in topic.partition_indexes)
