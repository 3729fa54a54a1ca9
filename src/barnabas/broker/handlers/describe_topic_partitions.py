"""DescribeTopicPartitions, key 75, version 0: partitions of topics, in pages.

Behaviour: topics come in the order of their names. A page ends after a number of partitions, the smaller of
what the client and max.request.partition.size.limit allow, and says where the next one begins. A topic
that does not exist is an error if the request names it. If only the cursor names it, it is skipped."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop
from itertools import islice

from barnabas.broker.authorization.authorizer import UNASKED
from barnabas.broker.authorized import topic_operations
from barnabas.broker.call import Call
from barnabas.broker.leaders import offline_replicas, reachable_brokers
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.ids import INTERNAL_TOPICS, topic_name_problem
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import PartitionImage, TopicImage
from barnabas.metadata.records import NO_LEADER
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def describe_topic_partitions(
    call: Call, request: DescribeTopicPartitionsRequest
) -> Work[DescribeTopicPartitionsResponse]:
    cursor = request.cursor
    named = dict.fromkeys(topic.name for topic in request.topics)
    yield
    if cursor is not None and (cursor.partition_index < 0 or (named and cursor.topic_name not in named)):
        return (yield from _refuse(named))
    first_name = "" if cursor is None else cursor.topic_name
    # A heap, because a page needs only the first names in order, and sorting many cannot be interrupted.
    names = [name for name in named or _visible_topics(call) if name >= first_name]
    heapify(names)
    yield
    limit: int = call.broker.config["max.request.partition.size.limit"]
    page = Page(call, max(1, min(limit, request.response_partition_limit)))
    while names:
        name = heappop(names)
        start = cursor.partition_index if cursor is not None and name == first_name else 0
        if not page.add(name, start):
            break
        yield
    return page.response


def _visible_topics(call: Call) -> Iterable[str]:
    """All topics that the client may describe."""
    authorizer = call.broker.authorizer
    if not authorizer.is_enabled:
        return call.broker.image.topics
    return [
        name
        for name in call.broker.image.topics
        if authorizer.allows(call.session, Operation.DESCRIBE, ResourceType.TOPIC, name, UNASKED)
    ]


class Page:
    """The answer while it is filled."""

    def __init__(self, call: Call, limit: int) -> None:
        self._call = call
        self._room = limit
        self.response = DescribeTopicPartitionsResponse()
        self._reachable = reachable_brokers(call)

    def add(self, name: str, start: int) -> bool:
        """Add a topic's partitions from `start` on; False once the page is full."""
        if self._room == 0:
            self.response.next_cursor = Cursor(topic_name=name, partition_index=start)
            return False
        topic = self._call.broker.image.topic(name)
        if topic is None:
            self.response.topics.append(_absent(self._call, name))
            return True
        partitions = [
            _partition(self._call.broker.image, index, part, self._reachable)
            for index, part in islice(enumerate(topic.partitions), start, start + self._room)
        ]
        self.response.topics.append(_topic(self._call, topic, partitions))
        self._room -= len(partitions)
        end = start + len(partitions)
        if end < len(topic.partitions):
            self.response.next_cursor = Cursor(topic_name=name, partition_index=end)
            return False
        return True


def _refuse(named: Iterable[str]) -> Work[DescribeTopicPartitionsResponse]:
    """The cursor makes no sense; the message has a place for that only in the topics asked for."""
    response = DescribeTopicPartitionsResponse()
    for name in named:
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=name)
        )
        yield
    return response


def _absent(call: Call, name: str) -> DescribeTopicPartitionsResponseTopic:
    is_valid = topic_name_problem(name) is None
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=topic_operations(call, name),
    )


def _topic(
    call: Call, topic: TopicImage, partitions: list[DescribeTopicPartitionsResponsePartition]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=topic_operations(call, topic.name),
    )


def _partition(
    image: MetadataImage, index: int, part: PartitionImage, reachable: frozenset[int]
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=part.leader if part.leader in reachable else NO_LEADER,
        leader_epoch=part.leader_epoch,
        replica_nodes=list(part.replicas),
        isr_nodes=list(part.isr),
        eligible_leader_replicas=list(part.elr),
        last_known_elr=list(part.last_known_elr),
        offline_replicas=offline_replicas(image, part, reachable),
    )
