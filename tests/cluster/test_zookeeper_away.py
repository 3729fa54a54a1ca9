"""A cluster while its ZooKeeper is away, and after it has forgotten all sessions."""

import re
import time

from tests.cluster.conftest import MakeTopic
from tests.cluster.reading import check_order, check_written, values_of
from tests.cluster.writers import Writers

from barnabas.client.admin import NewTopic
from barnabas.testing import Cluster

PARTITIONS = 3
# Longer than the session timeout of the test cluster.
LONG_PAUSE_SECONDS = 7.0


def check_all(cluster: Cluster, topic: str, writers: Writers) -> None:
    values = []
    for partition in range(PARTITIONS):
        read = values_of("barnabas", cluster.bootstrap, topic, partition)
        check_order(read)
        values += read
    check_written(values, writers.acknowledged)


def elections(cluster: Cluster) -> set[int]:
    """The epochs of all controllers so far."""
    printed = "".join(broker.output() for broker in cluster.brokers.values())
    return {int(epoch) for epoch in re.findall(r"is the controller, epoch (\d+)", printed)}


def test_producers_write_while_zookeeper_is_down(cluster: Cluster, make_topic: MakeTopic) -> None:
    topic = make_topic(PARTITIONS)
    before = elections(cluster)
    with Writers(cluster.bootstrap, topic, PARTITIONS) as writers:
        writers.wait_for(20)
        cluster.zookeeper.kill()
        writers.wait_for(100)
        cluster.zookeeper.restart()
        writers.wait_for(50)
    check_all(cluster, topic, writers)
    # The metadata can be changed again, and there was no reason for another controller.
    with cluster.admin() as admin:
        admin.create_topics([NewTopic("after-zookeeper-was-down", 3, 3)], timeout=60)
    cluster.wait_until_in_sync("after-zookeeper-was-down")
    assert len(elections(cluster) - before) <= 1


def test_all_brokers_register_again_after_all_sessions_expired(
    cluster: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(PARTITIONS)
    before = elections(cluster)
    with Writers(cluster.bootstrap, topic, PARTITIONS) as writers:
        writers.wait_for(20)
        for broker_id in cluster.brokers:
            cluster.pause(broker_id)
        time.sleep(LONG_PAUSE_SECONDS)
        for broker_id in cluster.brokers:
            cluster.resume(broker_id)
        writers.wait_for(50)
        cluster.wait_until_in_sync(topic)
        writers.wait_for(50)
    check_all(cluster, topic, writers)
    for broker in cluster.brokers.values():
        assert re.search("the session with ZooKeeper at .* has expired", broker.output())
    # One election; a second one only if a busy machine loses a session again.
    assert 1 <= len(elections(cluster) - before) <= 2
    with cluster.admin() as admin:
        admin.create_topics([NewTopic("after-the-sessions-expired", 3, 3)], timeout=60)
    cluster.wait_until_in_sync("after-the-sessions-expired")
