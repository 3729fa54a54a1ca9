"""Describes topics in pages (DescribeTopicPartitions): the size of an answer is limited even for large
topics, and the answer has the eligible leader replicas."""

from collections.abc import Mapping

from barnabas.client.errors import ErrorCode, KafkaError, error_from
from barnabas.client.types import Node, TopicDescription, TopicPartitionInfo
from barnabas.net.broker_connection import BrokerConnection
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
    pieces_by_name: dict[str, list[DescribeTopicPartitionsResponseTopic]] = {}
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
            pieces_by_name.setdefault(topic.name or "", []).append(topic)
        if page.next_cursor is None:
            return {name: _description(pieces, nodes) for name, pieces in pieces_by_name.items()}
        if cursor is not None and _position(page.next_cursor) <= _position(cursor):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker sent the same page again")
        cursor = page.next_cursor


def _position(cursor: Cursor) -> tuple[str, int]:
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
    """The nodes with these ids. A broker that is down is not in the metadata but is still a replica."""
    return tuple(nodes.get(node_id, Node(node_id, "", -1)) for node_id in ids)
