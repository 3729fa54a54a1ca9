"""Topics described in pages (DescribeTopicPartitions): no answer grows with the size of a topic, and the
replicas that may still be elected are told."""

from collections.abc import Mapping

from barnabas.client.connection import BrokerConnection
from barnabas.client.errors import ErrorCode, KafkaError, error_from
from barnabas.client.types import Node, TopicDescription, TopicPartitionInfo
from barnabas.wire.messages.describe_topic_partitions import (
    API_KEY,
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)

Nodes = Mapping[int, Node]


async def described_in_pages(
    connection: BrokerConnection, names: list[str], partitions_max: int, nodes: Nodes
) -> dict[str, TopicDescription | KafkaError]:
    """Descriptions or errors by name; at most `partitions_max` partitions per answer."""
    found: dict[str, list[DescribeTopicPartitionsResponseTopic]] = {}
    cursor: Cursor | None = None
    while True:
        first = "" if cursor is None else cursor.topic_name
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in sorted(names) if name >= first],
            response_partition_limit=partitions_max,
            cursor=cursor,
        )
        page: DescribeTopicPartitionsResponse = await connection.send(API_KEY, request)
        for topic in page.topics:
            found.setdefault(topic.name or "", []).append(topic)
        if page.next_cursor is None:
            return {name: _description(pieces, nodes) for name, pieces in found.items()}
        if cursor is not None and _place(page.next_cursor) <= _place(cursor):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker gives the same page again")
        cursor = page.next_cursor


def _place(cursor: Cursor) -> tuple[str, int]:
    return cursor.topic_name, cursor.partition_index


def _description(
    pieces: list[DescribeTopicPartitionsResponseTopic], nodes: Nodes
) -> TopicDescription | KafkaError:
    for piece in pieces:
        if piece.error_code:
            return error_from(piece.error_code)
    first = pieces[0]
    partitions = {
        part.partition_index: _partition(part, nodes) for piece in pieces for part in piece.partitions
    }
    return TopicDescription(
        first.name or "",
        tuple(partitions[number] for number in sorted(partitions)),
        first.topic_id,
        first.is_internal,
    )


def _partition(part: DescribeTopicPartitionsResponsePartition, nodes: Nodes) -> TopicPartitionInfo:
    return TopicPartitionInfo(
        part.partition_index,
        nodes.get(part.leader_id),
        part.leader_epoch,
        _nodes(part.replica_nodes, nodes),
        _nodes(part.isr_nodes, nodes),
        None if part.eligible_leader_replicas is None else _nodes(part.eligible_leader_replicas, nodes),
        None if part.last_known_elr is None else _nodes(part.last_known_elr, nodes),
    )


def _nodes(ids: list[int], nodes: Nodes) -> tuple[Node, ...]:
    """A broker that is down is not listed, and is still a replica."""
    return tuple(nodes.get(node_id, Node(node_id, "", -1)) for node_id in ids)
