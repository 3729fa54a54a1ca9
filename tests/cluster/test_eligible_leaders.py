"""All brokers go down, one of them by a crash: the leader is one that has every acknowledged record."""

from tests.cluster.conftest import MakeTopic
from tests.cluster.reading import values_of

import barnabas
from barnabas.testing import Cluster


def eligible(cluster: Cluster, topic: str) -> list[int]:
    with cluster.admin() as admin:
        (partition,) = admin.describe_topics([topic])[topic].partitions
    return [node.id for node in partition.eligible_leader_replicas or ()]


def test_a_broker_that_crashed_does_not_lead_before_one_that_stopped_cleanly(
    cluster: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(configs={"min.insync.replicas": "2"})
    values = [b"%d" % number for number in range(100)]
    with barnabas.Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in values:
            producer.send(topic, value)
    last = cluster.leader_of((topic, 0))
    first, second = (broker_id for broker_id in cluster.brokers if broker_id != last)
    cluster.stop(first)
    cluster.stop(second)
    cluster.wait_until(lambda: eligible(cluster, topic) == [second], f"broker {second} is eligible")
    cluster.kill(last)
    cluster.restart(last)
    # It was the last one in sync, but it may have lost its newest records.
    assert (cluster.leader_of((topic, 0)), eligible(cluster, topic)) == (-1, [second])
    cluster.restart(second)
    cluster.wait_until(lambda: cluster.leader_of((topic, 0)) == second, f"broker {second} leads")
    cluster.restart(first)
    cluster.wait_until_in_sync(topic)
    assert values_of("barnabas", cluster.bootstrap, topic, 0) == values
