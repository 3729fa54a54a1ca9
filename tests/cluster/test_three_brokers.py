"""Three broker processes on a real ZooKeeper: forwarding, one view of the cluster, failover, clean stops.

The tests share one cluster; each leaves it whole."""

import threading
from collections.abc import Iterator

import confluent_kafka
import pytest
from tests.support.raw_client import RawClient

from barnabas import Consumer, Producer, TopicPartition
from barnabas.client.admin import NewTopic
from barnabas.testing import Cluster
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

METADATA, CREATE_TOPICS = 3, 19


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as running:
        yield running


def other_than(cluster: Cluster, broker_id: int) -> int:
    return next(other for other in cluster.brokers if other != broker_id)


def create(cluster: Cluster, topic: str) -> None:
    with cluster.admin() as admin:
        admin.create_topics([NewTopic(topic, 3, 3)])
    cluster.wait_until_in_sync(topic)


def metadata_of(cluster: Cluster, broker_id: int, topic: str) -> MetadataResponse:
    with RawClient("127.0.0.1", cluster.brokers[broker_id].port) as client:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        answer: MetadataResponse = client.call(METADATA, 12, request)
        return answer


def produce(cluster: Cluster, topic: str, numbers: range) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        sent = [producer.send(topic, value=b"%d" % number) for number in numbers]
        producer.flush()
        for future in sent:
            future.result()


def read(cluster: Cluster, topic: str, count: int) -> set[int]:
    numbers: set[int] = set()
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, index) for index in range(3)])
        while len(numbers) < count:
            records = consumer.poll(timeout=20)
            assert records, f"only {len(numbers)} records of {count}"
            numbers |= {int(record.value) for record in records if record.value is not None}
    return numbers


def test_a_topic_created_through_any_broker_is_the_same_everywhere(cluster: Cluster) -> None:
    at = other_than(cluster, cluster.controller())
    topic = CreatableTopic(name="first-light", num_partitions=3, replication_factor=3)
    with RawClient("127.0.0.1", cluster.brokers[at].port) as client:
        request = CreateTopicsRequest(topics=[topic], timeout_ms=20_000)
        created: CreateTopicsResponse = client.call(CREATE_TOPICS, 7, request)
    assert [result.error_code for result in created.topics] == [0]
    # The broker that forwarded the request has the topic when it answers.
    assert [each.error_code for each in metadata_of(cluster, at, "first-light").topics] == [0]
    cluster.wait_until_in_sync("first-light")
    answers = [metadata_of(cluster, broker_id, "first-light") for broker_id in cluster.brokers]
    assert answers[0] == answers[1] == answers[2]
    assert {broker.node_id for broker in answers[0].brokers} == {1, 2, 3}
    assert answers[0].controller_id == cluster.controller()
    assert answers[0].topics[0].topic_id == created.topics[0].topic_id
    assert {part.leader_id for part in answers[0].topics[0].partitions} == {1, 2, 3}


def test_a_topic_that_a_producer_needs_is_created_through_any_broker(cluster: Cluster) -> None:
    at = other_than(cluster, cluster.controller())
    failures: list[object] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.brokers[at].address, "acks": "all"})
    producer.produce("on-first-use", b"value", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(30) == 0
    assert failures == [None]


def test_acknowledged_records_survive_the_death_of_the_controller_and_leader(cluster: Cluster) -> None:
    create(cluster, "survivors")
    produce(cluster, "survivors", range(300))
    dead = cluster.controller()
    cluster.kill(dead)
    cluster.wait_until(lambda: cluster.controller() not in (dead, -1), "another broker is the controller")
    cluster.wait_until(
        lambda: dead not in {cluster.leader_of(("survivors", index)) for index in range(3)},
        "other brokers lead the partitions",
    )
    with cluster.admin() as admin:
        admin.create_topics([NewTopic("after-the-death", 3, 2)])
    produce(cluster, "survivors", range(300, 600))
    assert read(cluster, "survivors", 600) == set(range(600))
    cluster.restart(dead)
    cluster.wait_until_in_sync("survivors")


def test_a_clean_stop_moves_the_leaders_first(cluster: Cluster) -> None:
    create(cluster, "moving")
    stopped = cluster.leader_of(("moving", 0))
    is_over = threading.Event()
    failures: list[BaseException] = []

    def keep_producing() -> None:
        try:
            with Producer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
                while not is_over.wait(0.005):
                    producer.send("moving", value=b"0").result(30)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=keep_producing)
    thread.start()
    cluster.stop(stopped)
    leaders = {cluster.leader_of(("moving", index)) for index in range(3)}
    is_over.set()
    thread.join(60)
    # Nobody had to wait for the end of the session: the leaders are others as soon as the process has ended.
    assert leaders == {1, 2, 3} - {stopped}
    assert failures == []
    assert "without a controlled shutdown" not in cluster.brokers[stopped].output()
    cluster.restart(stopped)
    cluster.wait_until_in_sync("moving")
