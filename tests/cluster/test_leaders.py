"""What a leader does for its followers and because of them, on three real brokers in three racks.

Sessions are long here: a broker that hangs leaves the ISR because it does not fetch, not because its session
ends."""

import uuid
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.support.raw_calls import (
    FETCH,
    Topic,
    batch_of,
    fetch_partition,
    fetch_request,
    produce_batch,
    produce_request,
)
from tests.support.raw_client import RawClient

from barnabas.client.admin import NewTopic
from barnabas.errors import ErrorCode
from barnabas.testing import Cluster
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

PRODUCE, METADATA, DELETE_RECORDS = 0, 3, 21
SETTINGS = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "replica.lag.time.max.ms": "2500",
    "zookeeper.session.timeout.ms": "30000",
}
RACKS = ("a", "b", "c")


class Led(NamedTuple):
    """A topic with one partition, led by the controller, so that the controller never hangs."""

    topic: Topic
    leader: int
    followers: tuple[int, int]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, overrides=SETTINGS, racks=RACKS) as cluster:
        yield cluster


@pytest.fixture
def led(cluster: Cluster) -> Iterator[Led]:
    leader = cluster.controller()
    first, second = (broker_id for broker_id in cluster.brokers if broker_id != leader)
    name = f"led-{uuid.uuid4().hex[:8]}"
    with cluster.admin() as admin:
        created = admin.create_topics([NewTopic(name, assignments={0: [leader, first, second]})])
    cluster.wait_until_in_sync(name)
    yield Led(Topic(name, created[name].topic_id), leader, (first, second))
    for broker_id in cluster.brokers:
        cluster.resume(broker_id)
    cluster.wait_until_in_sync(name)


def connect(cluster: Cluster, broker_id: int) -> RawClient:
    return RawClient("127.0.0.1", cluster.brokers[broker_id].port)


def in_sync(client: RawClient, led: Led) -> set[int]:
    """The ISR as the broker of this connection knows it; the others may hang."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=led.topic.name)])
    (topic,) = client.call(METADATA, 9, request).topics
    return set(topic.partitions[0].isr_nodes)


def test_followers_that_hang_leave_the_isr_and_below_min_isr_nothing_is_committed(
    cluster: Cluster, led: Led
) -> None:
    first, second = led.followers
    with connect(cluster, led.leader) as client:
        assert produce_batch(client, led.topic, batch_of(b"0")).error_code == ErrorCode.NONE
        cluster.pause(first)
        # Waits until the follower has left the ISR.
        assert produce_batch(client, led.topic, batch_of(b"1")).error_code == ErrorCode.NONE
        assert in_sync(client, led) == {led.leader, second}
        cluster.pause(second)
        produce_batch(client, led.topic, batch_of(b"2"), acks=1)
        cluster.wait_until(lambda: in_sync(client, led) == {led.leader}, "the leader is alone")
        refused = produce_batch(client, led.topic, batch_of(b"3"))
        assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert produce_batch(client, led.topic, batch_of(b"4"), acks=1).error_code == ErrorCode.NONE
        assert fetch_partition(client, led.topic, 2).high_watermark == 2
        cluster.resume(second)
        cluster.wait_until(
            lambda: fetch_partition(client, led.topic, 2).high_watermark == 4,
            "what was appended is committed when a follower is back",
        )
        assert produce_batch(client, led.topic, batch_of(b"5")).error_code == ErrorCode.NONE


def test_pipelined_batches_are_acknowledged_in_order_when_they_are_committed(
    cluster: Cluster, led: Led
) -> None:
    with connect(cluster, led.leader) as client:
        for number in range(200):
            client.send(PRODUCE, 9, produce_request(led.topic, batch_of(b"%d" % number)))
        for number in range(200):
            answer = client.receive(PRODUCE, 9)[1].responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number)
        assert fetch_partition(client, led.topic, 0).high_watermark == 200


def test_a_consumer_is_sent_to_the_replica_in_its_rack_and_can_read_there(cluster: Cluster, led: Led) -> None:
    follower = led.followers[0]
    request = fetch_request(led.topic)
    request.rack_id = RACKS[follower - 1]
    with connect(cluster, led.leader) as leader, connect(cluster, follower) as nearby:
        produce_batch(leader, led.topic, batch_of(b"0", b"1"))
        sent = leader.call(FETCH, 12, request).responses[0].partitions[0]
        assert (sent.preferred_read_replica, len(sent.records)) == (follower, 0)
        cluster.wait_until(
            lambda: fetch_partition(nearby, led.topic).high_watermark == 2,
            "the follower knows the high watermark",
        )
        answer = nearby.call(FETCH, 12, request).responses[0].partitions[0]
        assert (answer.error_code, answer.preferred_read_replica) == (ErrorCode.NONE, -1)
        assert bytes(answer.records) == bytes(fetch_partition(leader, led.topic).records)


def test_deleting_records_waits_for_the_followers(cluster: Cluster, led: Led) -> None:
    part = DeleteRecordsPartition(partition_index=0, offset=2)
    topic = DeleteRecordsTopic(name=led.topic.name, partitions=[part])
    with connect(cluster, led.leader) as client:
        produce_batch(client, led.topic, batch_of(b"0", b"1", b"2"))
        answer = client.call(DELETE_RECORDS, 2, DeleteRecordsRequest(topics=[topic], timeout_ms=15_000))
        (result,) = answer.topics[0].partitions
        assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 2)
        for follower in led.followers:
            with connect(cluster, follower) as other:
                assert fetch_partition(other, led.topic, 2).log_start_offset == 2
