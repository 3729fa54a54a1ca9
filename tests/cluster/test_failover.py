"""Leaders and controllers that die, stop and hang, while producers of four libraries write."""

import pytest
from tests.cluster.conftest import MakeTopic
from tests.cluster.reading import check_order, check_written, values_of
from tests.cluster.writers import PRODUCING, Writers

import barnabas
from barnabas.client.admin import ElectionType, NewTopic
from barnabas.testing import Cluster

PARTITIONS = 3


def wait_for_another_leader(cluster: Cluster, topic: str, former: int) -> None:
    for partition in range(PARTITIONS):
        cluster.wait_until(
            lambda partition=partition: cluster.leader_of((topic, partition)) not in (former, -1),
            f"{topic}-{partition} has a leader other than {former}",
        )


def check_all(cluster: Cluster, topic: str, writers: Writers) -> None:
    """Every library reads every acknowledged record, from every partition."""
    for library in PRODUCING:
        values = []
        for partition in range(PARTITIONS):
            read = values_of(library, cluster.bootstrap, topic, partition)
            check_order(read)
            values += read
        check_written(values, writers.acknowledged)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_nothing_acknowledged_is_lost_when_a_leader_ends(
    cluster: Cluster, make_topic: MakeTopic, end: str
) -> None:
    topic = make_topic(PARTITIONS)
    leader = cluster.leader_of((topic, 0))
    with Writers(cluster.bootstrap, topic, PARTITIONS) as writers:
        writers.wait_for(20)
        getattr(cluster, end)(leader)
        wait_for_another_leader(cluster, topic, leader)
        writers.wait_for(20)
        cluster.restart(leader)
        cluster.wait_until_in_sync(topic)
        writers.wait_for(20)
    check_all(cluster, topic, writers)


def test_a_leader_that_hangs_acknowledges_nothing_when_it_comes_back(
    cluster: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(PARTITIONS)
    leader = cluster.leader_of((topic, 0))
    with Writers(cluster.bootstrap, topic, PARTITIONS) as writers:
        writers.wait_for(20)
        cluster.pause(leader)
        wait_for_another_leader(cluster, topic, leader)
        writers.wait_for(20)
        cluster.resume(leader)
        cluster.wait_until_in_sync(topic)
        writers.wait_for(20)
    check_all(cluster, topic, writers)


def test_another_broker_becomes_the_controller(cluster: Cluster, make_topic: MakeTopic) -> None:
    former = cluster.controller()
    cluster.kill(former)
    cluster.wait_until(lambda: cluster.controller() not in (former, -1), "there is another controller")
    name = f"after-{former}"
    with cluster.admin() as admin:
        admin.create_topics([NewTopic(name, 1, 2)])
    with barnabas.Producer(bootstrap_servers=cluster.bootstrap) as producer:
        assert producer.send(name, value=b"one").result(30).offset == 0
    cluster.restart(former)


def test_leadership_returns_to_the_preferred_replica_by_request(
    cluster: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    leader = cluster.leader_of((topic, 0))
    cluster.restart(leader)
    cluster.wait_until_in_sync(topic)
    assert cluster.leader_of((topic, 0)) != leader
    partition = barnabas.TopicPartition(topic, 0)
    with cluster.admin() as admin:
        assert admin.elect_leaders(ElectionType.PREFERRED, [partition]) == {partition: None}
    cluster.wait_until(lambda: cluster.leader_of((topic, 0)) == leader, "the preferred replica leads")
