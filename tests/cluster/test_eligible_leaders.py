"""All brokers go down, one of them by a crash: the leader is one that has every acknowledged record."""

from tests.cluster.conftest import MakeTopic
from tests.cluster.reading import values_of

import barnabas
from barnabas.client.admin import (
    AlterConfigOp,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
)
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


def allow_unclean_elections(cluster: Cluster, is_allowed: bool) -> None:
    """The dynamic default of all brokers."""
    operation = ConfigOperation.SET if is_allowed else ConfigOperation.DELETE
    change = AlterConfigOp("unclean.leader.election.enable", "true" if is_allowed else None, operation)
    with cluster.admin() as admin:
        admin.incremental_alter_configs({ConfigResource(ConfigResourceType.BROKER, ""): [change]})


def test_a_replica_that_is_behind_leads_only_when_that_is_allowed(cluster: Cluster) -> None:
    topic = "unclean"
    with cluster.admin() as admin:
        configs = {"min.insync.replicas": "1"}
        admin.create_topics([NewTopic(topic, assignments={0: [1, 2]}, configs=configs)])
    cluster.wait_until_in_sync(topic)
    with barnabas.Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"on both").result()
        cluster.stop(2)
        producer.send(topic, b"on broker 1").result()
    cluster.kill(1)
    cluster.restart(2)
    cluster.wait_until(lambda: eligible(cluster, topic) == [1], "broker 1 is eligible")
    assert cluster.leader_of((topic, 0)) == -1
    allow_unclean_elections(cluster, True)
    try:
        cluster.wait_until(lambda: cluster.leader_of((topic, 0)) == 2, "broker 2 leads")
    finally:
        allow_unclean_elections(cluster, False)
    cluster.restart(1)
    cluster.wait_until_in_sync(topic)
    assert values_of("barnabas", cluster.bootstrap, topic, 0) == [b"on both"]
