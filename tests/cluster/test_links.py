"""Networks that are cut between brokers, and between a broker and ZooKeeper."""

import pytest
from tests.cluster.conftest import MakeTopic
from tests.cluster.reading import check_order, check_written, values_of
from tests.cluster.writers import Writers

import barnabas
from barnabas.testing import Cluster


@pytest.fixture(scope="module")
def overrides() -> dict[str, str]:
    return {"replica.lag.time.max.ms": "2000"}


def in_sync(cluster: Cluster, topic: str) -> set[int]:
    with cluster.admin() as admin:
        return {node.id for node in admin.describe_topics([topic])[topic].partitions[0].in_sync_replicas}


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


def test_only_members_of_the_cluster_can_be_cut_off(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="neither a broker of this cluster"):
        cluster.cut(1, 9)
