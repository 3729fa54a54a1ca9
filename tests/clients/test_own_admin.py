"""Our admin client, on our broker and on Apache Kafka."""

import uuid
from collections.abc import Iterator

import confluent_kafka
import pytest
from tests.clients.client import wait_until

import barnabas
from barnabas.client.admin import (
    AdminError,
    AlterConfigOp,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    OffsetSpec,
)
from barnabas.client.admin.replicas import ReplicaData
from barnabas.client.types import OffsetAndMetadata, TopicPartition
from barnabas.errors import ErrorCode


@pytest.fixture
def own_admin(bootstrap: str) -> Iterator[barnabas.Admin]:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        yield admin


@pytest.fixture
def filled(bootstrap: str, topic_name: str, own_admin: barnabas.Admin) -> TopicPartition:
    """Partition 0 of a topic with two, holding ten records."""
    own_admin.create_topics([NewTopic(topic_name, partitions=2, replication_factor=1)])
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce(topic_name, f"{number}".encode(), partition=0, timestamp=1_000 + number)
    assert producer.flush(20) == 0
    return TopicPartition(topic_name, 0)


def failure(caught: pytest.ExceptionInfo[AdminError]) -> ErrorCode:
    return caught.value.code


def test_topics_are_created_enlarged_and_deleted(own_admin: barnabas.Admin, topic_name: str) -> None:
    new_topic = NewTopic(topic_name, 3, 1, configs={"retention.ms": "60000"})
    own_admin.create_topics([new_topic], validate_only=True)
    assert topic_name not in own_admin.list_topics()
    made = own_admin.create_topics([new_topic])[topic_name]
    assert (made.partitions, made.replication_factor) == (3, 1)
    assert made.configs["retention.ms"] == "60000"
    with pytest.raises(AdminError) as caught:
        own_admin.create_topics([new_topic])
    assert failure(caught) is ErrorCode.TOPIC_ALREADY_EXISTS
    own_admin.create_partitions({topic_name: 4})

    def partitions() -> list[int]:
        description = own_admin.describe_topics([topic_name])[topic_name]
        return [info.partition for info in description.partitions if info.leader is not None]

    wait_until(lambda: partitions() == [0, 1, 2, 3], "the new partition")
    described = own_admin.describe_topics([topic_name])[topic_name]
    assert described.topic_id == made.topic_id
    assert all(info.leader in own_admin.describe_cluster().nodes for info in described.partitions)
    own_admin.delete_topics([topic_name])
    with pytest.raises(AdminError) as caught:
        own_admin.delete_topics([topic_name])
    assert failure(caught) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_settings_are_changed_one_by_one_or_replaced(own_admin: barnabas.Admin, topic_name: str) -> None:
    own_admin.create_topics([NewTopic(topic_name, 1, 1, configs={"retention.ms": "60000"})])
    topic = ConfigResource(ConfigResourceType.TOPIC, topic_name)

    def value(key: str) -> str | None:
        return own_admin.describe_configs([topic])[topic][key].value

    own_admin.incremental_alter_configs({topic: [AlterConfigOp("segment.ms", "70000")]})
    wait_until(lambda: (value("retention.ms"), value("segment.ms")) == ("60000", "70000"), "the new value")
    own_admin.incremental_alter_configs(
        {topic: [AlterConfigOp("segment.ms", operation=ConfigOperation.DELETE)]}
    )
    wait_until(lambda: value("segment.ms") == "604800000", "the default")
    own_admin.alter_configs({topic: {"max.message.bytes": "2000"}})
    expected = ("604800000", "2000")
    wait_until(lambda: (value("retention.ms"), value("max.message.bytes")) == expected, "the new values")
    with pytest.raises(AdminError) as caught:
        own_admin.incremental_alter_configs({topic: [AlterConfigOp("segment.ms", "soon")]})
    assert failure(caught) is ErrorCode.INVALID_CONFIG


def test_a_broker_describes_itself(own_admin: barnabas.Admin) -> None:
    node = own_admin.describe_cluster().nodes[0]
    broker = ConfigResource(ConfigResourceType.BROKER, str(node.id))
    entries = own_admin.describe_configs([broker], include_documentation=True)[broker]
    assert entries["log.retention.hours"].documentation
    assert own_admin.api_versions()[node.id].versions[18][0] == 0
    assert own_admin.describe_log_dirs()[node.id]
    assert broker in own_admin.list_config_resources([ConfigResourceType.BROKER])


def test_offsets_are_looked_up_and_records_deleted(own_admin: barnabas.Admin, filled: TopicPartition) -> None:
    def offset(spec: int) -> int:
        return own_admin.list_offsets({filled: spec})[filled].offset

    assert (offset(OffsetSpec.EARLIEST), offset(OffsetSpec.LATEST)) == (0, 10)
    assert (offset(1_004), offset(OffsetSpec.MAX_TIMESTAMP)) == (4, 9)
    assert own_admin.delete_records({filled: 3}) == {filled: 3}
    assert offset(OffsetSpec.EARLIEST) == 3
    with pytest.raises(AdminError) as caught:
        own_admin.list_offsets({TopicPartition(filled.topic, 7): OffsetSpec.LATEST})
    assert failure(caught) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_group_of_offsets_only(own_admin: barnabas.Admin, filled: TopicPartition) -> None:
    group = f"of-{filled.topic}"
    other = TopicPartition(filled.topic, 1)
    own_admin.alter_consumer_group_offsets(group, {filled: 4, other: OffsetAndMetadata(0, "begin")})
    assert own_admin.list_consumer_group_offsets(group)[other].metadata == "begin"
    assert own_admin.lag_of(group) == {filled: 6, other: 0}
    with pytest.raises(AdminError) as caught:
        own_admin.alter_consumer_group_offsets(group, {TopicPartition(filled.topic, 9): 1})
    assert failure(caught) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    own_admin.delete_consumer_group_offsets(group, [other])
    assert set(own_admin.list_consumer_group_offsets(group)) == {filled}
    assert own_admin.list_consumer_group_offsets(group, [other]) == {}
    assert group in {listing.group_id for listing in own_admin.list_consumer_groups()}
    assert own_admin.describe_consumer_groups([group])[group].state == "Empty"
    own_admin.delete_consumer_groups([group])
    with pytest.raises(AdminError) as caught:
        own_admin.describe_consumer_groups([group])
    assert failure(caught) is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_are_described_with_their_partitions(
    own_admin: barnabas.Admin, bootstrap: str, filled: TopicPartition, protocol: str
) -> None:
    group = f"{protocol}-{filled.topic}"
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "worker",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([filled.topic])
    assert consumer.poll(20) is not None
    described = own_admin.describe_consumer_groups([group])[group]
    assert (described.type, described.state) == (protocol, "Stable")
    (member,) = described.members
    assert (member.client_id, member.is_upgraded) == ("worker", True if protocol == "consumer" else None)
    assert member.assignment == {filled, TopicPartition(filled.topic, 1)}
    with pytest.raises(AdminError) as caught:
        own_admin.delete_consumer_groups([group])
    assert failure(caught) is ErrorCode.NON_EMPTY_GROUP
    if protocol == "classic":
        own_admin.remove_members_from_consumer_group(group)
        assert own_admin.describe_consumer_groups([group])[group].state == "Empty"
    consumer.close()


def test_a_transaction_is_seen(own_admin: barnabas.Admin, bootstrap: str, filled: TopicPartition) -> None:
    name = f"tx-{uuid.uuid4().hex[:8]}"
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(filled.topic, b"x", partition=0)
    assert producer.flush(20) == 0
    described = own_admin.describe_transactions([name])[name]
    assert (described.state, described.partitions) == ("Ongoing", {filled})
    assert name in {listing.transactional_id for listing in own_admin.list_transactions(states=["Ongoing"])}
    (writing,) = [
        state
        for state in own_admin.describe_producers([filled])[filled]
        if state.producer_id == described.producer_id
    ]
    assert writing.current_transaction_start_offset == 10
    (leader,) = {info.leader for info in own_admin.describe_topics([filled.topic])[filled.topic].partitions}
    assert leader is not None
    assert writing in own_admin.describe_producers([filled], broker_id=leader.id)[filled]
    with pytest.raises(AdminError) as caught:
        own_admin.describe_producers([filled], broker_id=77)
    assert failure(caught) is ErrorCode.INVALID_REQUEST
    producer.abort_transaction(20)
    assert name not in {
        listing.transactional_id for listing in own_admin.list_transactions(states=["Ongoing"])
    }


def test_a_producer_is_fenced(own_admin: barnabas.Admin, bootstrap: str, filled: TopicPartition) -> None:
    name = f"tx-{uuid.uuid4().hex[:8]}"
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(filled.topic, b"x", partition=0)
    assert producer.flush(20) == 0
    (listing,) = own_admin.list_transactions(transactional_id_pattern=name)
    assert listing.coordinator_id in {node.id for node in own_admin.describe_cluster().nodes}
    own_admin.force_terminate_transaction(name)
    assert own_admin.describe_transactions([name])[name].partitions == frozenset()
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        producer.commit_transaction(20)
    assert caught.value.args[0].fatal()


def test_replicas_and_epochs_as_they_are(own_admin: barnabas.Admin, filled: TopicPartition) -> None:
    metadata = own_admin.fetch_metadata([filled.topic])
    leader = metadata.leader_of(filled)
    assert leader is not None and metadata.topics[filled.topic].name == filled.topic
    assert filled.topic in own_admin.fetch_metadata().topics
    other = TopicPartition(filled.topic, 1)
    assert own_admin.replica_ends(leader.node_id, [filled, other]) == {filled: 10, other: 0}
    history = own_admin.leader_epochs([filled])[filled]
    assert (history.end, [each.epoch for each in history.epochs], history.epochs[-1].start) == (
        10,
        [leader.epoch],
        0,
    )
    data = own_admin.read_replicas(leader.node_id, {filled: 4}, isolation_level="read_committed")[filled]
    assert isinstance(data, ReplicaData)
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (10, 10, 0)
    assert data.records and data.aborted == ()
    with pytest.raises(AdminError) as caught:
        own_admin.leader_epochs([TopicPartition(filled.topic, 9)])
    assert failure(caught) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
