"""The admin client with larger clusters: pages of partitions, fenced brokers, reassignments."""

from collections.abc import Callable

import pytest
from tests.support.scripted_peer import Answer, ScriptedPeer, versions

from barnabas.client.admin import Admin, AdminError, PartitionReassignment
from barnabas.client.errors import ErrorCode, KafkaError, UnsupportedVersionError
from barnabas.client.types import TopicPartition
from barnabas.wire.codec import Request
from barnabas.wire.messages import (
    describe_cluster,
    describe_topic_partitions,
    list_partition_reassignments,
    metadata,
    unregister_broker,
)

TOPIC_ID = bytes(range(16))


class Peer:
    """One broker that answers Metadata and one other API; `requests` has the requests of that API."""

    def __init__(self, spoken: dict[int, tuple[int, int]], answer: Callable[[Request], Answer]) -> None:
        self._spoken = {metadata.API_KEY: (0, 13), **spoken}
        self._answer = answer
        self.peer = ScriptedPeer(self)
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Answer:
        match request.header.api_key:
            case 18:
                return versions(self._spoken)
            case metadata.API_KEY:
                part = metadata.MetadataResponsePartition(
                    partition_index=0, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1]
                )
                return metadata.MetadataResponse(
                    brokers=[
                        metadata.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.peer.port)
                    ],
                    controller_id=1,
                    topics=[metadata.MetadataResponseTopic(name="orders", partitions=[part])],
                )
            case _:
                self.requests.append(request)
                return self._answer(request)

    def admin(self) -> Admin:
        return Admin(bootstrap_servers=self.peer.bootstrap, retry_backoff_ms=1)


def part(number: int, leader: int = 1) -> describe_topic_partitions.DescribeTopicPartitionsResponsePartition:
    return describe_topic_partitions.DescribeTopicPartitionsResponsePartition(
        partition_index=number,
        leader_id=leader,
        replica_nodes=[1, 2],
        isr_nodes=[1],
        eligible_leader_replicas=[2],
    )


def topic(
    name: str, *parts: describe_topic_partitions.DescribeTopicPartitionsResponsePartition, error_code: int = 0
) -> describe_topic_partitions.DescribeTopicPartitionsResponseTopic:
    return describe_topic_partitions.DescribeTopicPartitionsResponseTopic(
        name=name, topic_id=TOPIC_ID, partitions=list(parts), error_code=error_code
    )


def test_topics_are_described_page_by_page() -> None:
    cursor = describe_topic_partitions.Cursor(topic_name="b", partition_index=1)
    pages = [
        describe_topic_partitions.DescribeTopicPartitionsResponse(
            topics=[topic("a", part(0)), topic("b", part(0))], next_cursor=cursor
        ),
        describe_topic_partitions.DescribeTopicPartitionsResponse(topics=[topic("b", part(1, leader=7))]),
    ]
    peer = Peer({describe_topic_partitions.API_KEY: (0, 0)}, lambda request: pages.pop(0))
    with peer.peer, peer.admin() as admin:
        described = admin.describe_topics(["b", "a"], partition_size_limit_per_response=2)
    assert [request.message.response_partition_limit for request in peer.requests] == [2, 2]
    assert [[each.name for each in request.message.topics] for request in peer.requests] == [
        ["a", "b"],
        ["b"],
    ]
    assert peer.requests[1].message.cursor.partition_index == 1
    assert described["b"].topic_id == TOPIC_ID
    first, second = described["b"].partitions
    assert first.leader is not None and first.leader.id == 1
    assert second.leader is None
    assert [node.id for node in first.eligible_leader_replicas or ()] == [2]
    assert first.last_known_eligible_leader_replicas is None


def test_a_broker_that_sends_the_same_page_again_is_an_error() -> None:
    cursor = describe_topic_partitions.Cursor(topic_name="a", partition_index=1)
    peer = Peer(
        {describe_topic_partitions.API_KEY: (0, 0)},
        lambda request: describe_topic_partitions.DescribeTopicPartitionsResponse(
            topics=[topic("a", part(0))], next_cursor=cursor
        ),
    )
    with peer.peer, peer.admin() as admin, pytest.raises(AdminError, match="same page"):
        admin.describe_topics(["a"])
    assert len(peer.requests) == 2


def test_the_error_of_one_topic_does_not_affect_the_others() -> None:
    answer = describe_topic_partitions.DescribeTopicPartitionsResponse(
        topics=[topic("a", part(0)), topic("b", error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    )
    peer = Peer({describe_topic_partitions.API_KEY: (0, 0)}, lambda request: answer)
    with peer.peer, peer.admin() as admin, pytest.raises(AdminError) as caught:
        admin.describe_topics(["a", "b"])
    assert list(caught.value.errors) == ["b"]
    assert list(caught.value.results) == ["a"]


def test_an_old_broker_is_asked_for_metadata() -> None:
    peer = Peer({}, lambda request: b"")
    with peer.peer, peer.admin() as admin:
        (info,) = admin.describe_topics(["orders"])["orders"].partitions
    assert info.eligible_leader_replicas is None
    assert [node.id for node in info.replicas] == [1, 2]


def test_fenced_brokers_are_listed_on_request() -> None:
    brokers = [
        describe_cluster.DescribeClusterBroker(broker_id=1, host="one", port=9092, rack="r1"),
        describe_cluster.DescribeClusterBroker(broker_id=2, host="two", port=9092, is_fenced=True),
    ]
    answer = describe_cluster.DescribeClusterResponse(cluster_id="c", controller_id=1, brokers=brokers)
    peer = Peer({describe_cluster.API_KEY: (0, 2)}, lambda request: answer)
    with peer.peer, peer.admin() as admin:
        described = admin.describe_cluster(include_fenced_brokers=True)
    assert peer.requests[0].message.include_fenced_brokers
    assert described.fenced == {2}
    assert described.controller is not None and described.controller.host == "one"
    assert [node.rack for node in described.nodes] == ["r1", None]


def test_an_old_broker_that_cannot_list_fenced_brokers_is_an_error() -> None:
    peer = Peer({describe_cluster.API_KEY: (0, 1)}, lambda request: b"")
    with peer.peer, peer.admin() as admin, pytest.raises(UnsupportedVersionError, match="fenced"):
        admin.describe_cluster(include_fenced_brokers=True)


def test_a_broker_is_unregistered() -> None:
    answers = [0, ErrorCode.BROKER_ID_NOT_REGISTERED]
    peer = Peer(
        {unregister_broker.API_KEY: (0, 0)},
        lambda request: unregister_broker.UnregisterBrokerResponse(error_code=answers.pop(0)),
    )
    with peer.peer, peer.admin() as admin:
        admin.unregister_broker(3)
        with pytest.raises(KafkaError) as caught:
            admin.unregister_broker(3)
    assert caught.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert [request.message.broker_id for request in peer.requests] == [3, 3]


def test_partitions_that_move_are_listed() -> None:
    ongoing = list_partition_reassignments.OngoingPartitionReassignment(
        partition_index=4, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[1]
    )
    answer = list_partition_reassignments.ListPartitionReassignmentsResponse(
        topics=[list_partition_reassignments.OngoingTopicReassignment(name="orders", partitions=[ongoing])]
    )
    peer = Peer({list_partition_reassignments.API_KEY: (0, 0)}, lambda request: answer)
    with peer.peer, peer.admin() as admin:
        moving = admin.list_partition_reassignments([TopicPartition("orders", 4)])
        everything = admin.list_partition_reassignments()
    assert moving == everything == {TopicPartition("orders", 4): PartitionReassignment((1, 2, 3), (3,), (1,))}
    assert peer.requests[0].message.topics[0].partition_indexes == [4]
    assert peer.requests[1].message.topics is None
