"""Networks that are cut between brokers, between a broker and ZooKeeper, and between a broker and clients."""

import time

import pytest
from tests.cluster.conftest import MakeTopic
from tests.cluster.reading import check_order, check_written, values_of
from tests.cluster.writers import Writers

import barnabas
from barnabas.testing import Cluster, Quality


@pytest.fixture(scope="module")
def overrides() -> dict[str, str]:
    return {"replica.lag.time.max.ms": "2000"}


def in_sync(cluster: Cluster, topic: str, index: int = 0, *, seen_by: int | None = None) -> set[int]:
    with cluster.admin(seen_by) as admin:
        partition = admin.describe_topics([topic])[topic].partitions[index]
    return {node.id for node in partition.in_sync_replicas}


def test_a_follower_without_a_network_leaves_the_isr_and_returns(
    cluster: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    leader = cluster.leader_of((topic, 0))
    follower = next(id_ for id_ in cluster.brokers if id_ not in (leader, cluster.controller()))
    with Writers(cluster.bootstrap, topic) as writers:
        writers.wait_for(10)
        cluster.cut(leader, follower)
        cluster.wait_until(lambda: follower not in in_sync(cluster, topic), "the follower leaves the ISR")
        writers.wait_for(20)
        cluster.heal()
        cluster.wait_until_in_sync(topic)
        writers.wait_for(10)
    values = values_of("barnabas", cluster.bootstrap, topic, 0)
    check_written(values, writers.acknowledged)
    check_order(values)


def test_a_leader_that_loses_zookeeper_is_replaced_and_follows_when_it_is_back(
    cluster: Cluster, make_topic: MakeTopic
) -> None:
    """The former leader still reaches clients and brokers, but cannot acknowledge: nobody follows it."""
    topic = make_topic(1)
    leader = cluster.leader_of((topic, 0))
    another = next(id_ for id_ in cluster.brokers if id_ != leader)
    with barnabas.Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, value=b"barnabas 0").result(30)
    cluster.cut(leader, "zookeeper")
    cluster.wait_until(
        lambda: cluster.leader_of((topic, 0), seen_by=another) not in (leader, -1), "another broker leads"
    )
    with barnabas.Producer(bootstrap_servers=cluster.brokers[another].address) as producer:
        producer.send(topic, value=b"barnabas 1").result(60)
    cluster.heal()
    cluster.wait_until(
        lambda: cluster.leader_of((topic, 0), seen_by=leader) not in (leader, -1),
        "the former leader knows the new one",
    )
    cluster.wait_until_in_sync(topic)
    assert values_of("barnabas", cluster.bootstrap, topic, 0) == [b"barnabas 0", b"barnabas 1"]


def test_a_client_without_a_network_writes_when_it_is_back(cluster: Cluster, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    leader = cluster.leader_of((topic, 0))
    with barnabas.Producer(bootstrap_servers=cluster.bootstrap, request_timeout_ms=2000) as producer:
        producer.send(topic, value=b"before").result(30)
        with cluster.cut("client", leader):
            sending = producer.send(topic, value=b"during")
            with pytest.raises(TimeoutError):
                sending.result(1)
            # Brokers, and the questions of the test itself, are not concerned.
            assert in_sync(cluster, topic) == {1, 2, 3}
            assert values_at(cluster, leader, topic) == [b"before"]
        sending.result(30)
    assert values_at(cluster, leader, topic) == [b"before", b"during"]


def test_a_request_arrives_but_its_answer_does_not_if_the_link_is_cut_one_way(
    cluster: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    leader = cluster.leader_of((topic, 0))
    with barnabas.Producer(bootstrap_servers=cluster.bootstrap, request_timeout_ms=2000) as producer:
        producer.send(topic, value=b"before").result(30)
        with cluster.cut(leader, "client", one_way=True):
            sending = producer.send(topic, value=b"once")
            cluster.wait_until(
                lambda: values_at(cluster, leader, topic) == [b"before", b"once"], "the record is written"
            )
            assert not sending.done()
        # The producer has sent the record again; it is there once.
        sending.result(30)
    assert values_at(cluster, leader, topic) == [b"before", b"once"]


def test_a_slow_link_to_a_client(cluster: Cluster, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    leader = cluster.leader_of((topic, 0))
    with barnabas.Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, value=b"quick").result(30)
        with cluster.degrade("client", leader, Quality(delay_ms=300)):
            begin = time.monotonic()
            producer.send(topic, value=b"slow").result(30)
            assert time.monotonic() - begin >= 0.6
        producer.send(topic, value=b"quick again").result(30)


def values_at(cluster: Cluster, broker_id: int, topic: str) -> list[bytes]:
    """What a client reads that no cut concerns."""
    return values_of("barnabas", cluster.brokers[broker_id].address, topic, 0)


def test_only_members_of_the_cluster_can_be_cut_off(cluster: Cluster) -> None:
    with pytest.raises(
        ValueError, match=r"9 is not a member of this cluster; its members are 1, 2, 3, .client., .zookeeper."
    ):
        cluster.cut(1, 9)


def test_a_controller_that_only_zookeeper_reaches_is_replaced(
    cluster: Cluster, make_topic: MakeTopic
) -> None:
    """Without a controller that leaders can reach, no replica leaves an ISR, and nothing is committed."""
    topic, controller = make_topic(3), cluster.controller()
    index, leader = led_by_another(cluster, topic, controller)
    for other in cluster.brokers:
        if other != controller:
            cluster.cut(controller, other)
    with barnabas.Producer(bootstrap_servers=cluster.brokers[leader].address) as producer:
        written = producer.send(topic, value=b"during", partition=index)
        cluster.wait_until(
            lambda: cluster.controller(seen_by=leader) not in (controller, -1), "there is another controller"
        )
        written.result(60)
        assert controller not in in_sync(cluster, topic, index, seen_by=leader)
    cluster.heal()
    cluster.wait_until_in_sync(topic)
    assert values_of("barnabas", cluster.bootstrap, topic, index) == [b"during"]


def test_a_leader_that_cannot_reach_the_controller_reaches_it_through_another_broker(
    cluster: Cluster, make_topic: MakeTopic
) -> None:
    topic, controller = make_topic(3), cluster.controller()
    index, leader = led_by_another(cluster, topic, controller)
    cluster.cut(controller, leader)
    with barnabas.Producer(bootstrap_servers=cluster.brokers[leader].address) as producer:
        producer.send(topic, value=b"during", partition=index).result(60)
    assert controller not in in_sync(cluster, topic, index, seen_by=leader)
    assert cluster.controller(seen_by=leader) == controller
    cluster.heal()
    cluster.wait_until_in_sync(topic)


def led_by_another(cluster: Cluster, topic: str, controller: int) -> tuple[int, int]:
    """A partition that the controller does not lead, and its leader."""
    leaders = {index: cluster.leader_of((topic, index)) for index in range(3)}
    return next((index, leader) for index, leader in leaders.items() if leader != controller)
