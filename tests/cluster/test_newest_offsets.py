"""The committed offsets of a group while its coordinator, or the whole cluster, cannot reach ZooKeeper."""

from tests.cluster.conftest import MakeTopic
from tests.support.raw_client import RawClient
from tests.support.raw_groups import OFFSET_FETCH

from barnabas.client.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.testing import Cluster
from barnabas.wire.messages import offset_fetch

OFFSETS = "__consumer_offsets"
RETRIED = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}


def committed(cluster: Cluster, broker_id: int, group: str, partition: TopicPartition) -> tuple[int, int]:
    """What this broker answers, as (error code, offset)."""
    topic = offset_fetch.OffsetFetchRequestTopics(
        name=partition.topic, partition_indexes=[partition.partition]
    )
    asked = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=[topic])
    with RawClient("127.0.0.1", cluster.brokers[broker_id].port) as client:
        answer = client.call(OFFSET_FETCH, 8, offset_fetch.OffsetFetchRequest(groups=[asked])).groups[0]
    return answer.error_code, answer.topics[0].partitions[0].committed_offset if answer.topics else -1


def coordinator_of(cluster: Cluster, group: str) -> tuple[int, int]:
    """The coordinator, and the partition of the group."""
    with cluster.admin() as admin:
        coordinator = admin.describe_consumer_groups([group])[group].coordinator
        count = len(admin.describe_topics([OFFSETS])[OFFSETS].partitions)
    assert coordinator is not None
    hashed = 0
    for letter in group:
        hashed = (31 * hashed + ord(letter)) & 0xFFFFFFFF
    return coordinator.id, (hashed & 0x7FFFFFFF) % count


def test_a_replaced_coordinator_does_not_answer_with_old_offsets(
    cluster: Cluster, make_topic: MakeTopic
) -> None:
    partition, group = TopicPartition(make_topic(), 0), "replaced"
    with cluster.admin() as admin:
        admin.alter_consumer_group_offsets(group, {partition: 1})
    old, index = coordinator_of(cluster, group)
    assert committed(cluster, old, group, partition) == (0, 1)
    other = next(broker_id for broker_id in cluster.brokers if broker_id != old)
    cluster.cut(old, "zookeeper")
    cluster.wait_until(
        lambda: cluster.leader_of((OFFSETS, index), seen_by=other) not in (old, -1), "another coordinator"
    )
    with cluster.admin(other) as admin:
        admin.alter_consumer_group_offsets(group, {partition: 2})
    code, _ = committed(cluster, old, group, partition)
    assert code in RETRIED, "it cannot know that nobody else is the coordinator"
    cluster.heal()

    def knows() -> bool:
        # It begins a new session before it learns what the end of the old one has changed.
        code, offset = committed(cluster, old, group, partition)
        assert code in RETRIED or offset == 2
        return code == ErrorCode.NOT_COORDINATOR

    cluster.wait_until(knows, "the old coordinator knows that it was replaced")
    cluster.wait_until_in_sync(OFFSETS)
    with cluster.admin(old) as admin:
        assert admin.list_consumer_group_offsets(group)[partition].offset == 2


def test_offsets_are_read_while_zookeeper_is_away(cluster: Cluster, make_topic: MakeTopic) -> None:
    partition, group = TopicPartition(make_topic(), 0), "away"
    with cluster.admin() as admin:
        admin.alter_consumer_group_offsets(group, {partition: 1})
    cluster.wait_until_in_sync(OFFSETS)
    coordinator, _ = coordinator_of(cluster, group)
    cluster.zookeeper.kill()
    # The other replicas confirm, by their fetches, that this broker is the coordinator.
    cluster.wait_until(
        lambda: "lost the connection to ZooKeeper" in cluster.brokers[coordinator].output(), "it is noticed"
    )
    assert committed(cluster, coordinator, group, partition) == (0, 1)
    with cluster.admin(coordinator) as admin:
        admin.alter_consumer_group_offsets(group, {partition: 2})
    assert committed(cluster, coordinator, group, partition) == (0, 2)
    cluster.zookeeper.restart()
    cluster.wait_until_in_sync(OFFSETS)
