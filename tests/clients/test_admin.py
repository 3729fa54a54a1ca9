"""Topics, configs, records and the cluster through each library's admin client."""

from collections.abc import Mapping

import pytest
from tests.clients.client import Admin, Message, Sending, numbered, wait_until
from tests.clients.confluent_client import ConfluentClient
from tests.clients.conftest import MakeTopic
from tests.clients.kafka_python_client import (
    ConfigResource,
    ConfigResourceType,
    KafkaPythonAdmin,
    OffsetSpec,
    TopicPartition,
)

MODIFIED = {"retention.ms": "123456", "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.25"}
DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "max.message.bytes": "1048588",
    "min.insync.replicas": "1",
    "message.timestamp.type": "CreateTime",
    "index.interval.bytes": "4096",
}


def test_topic_is_created_listed_and_deleted(admin: Admin, topic_name: str) -> None:
    admin.create_topic(topic_name, partitions=3)
    wait_until(lambda: topic_name in admin.topics(), "the new topic")
    assert admin.partition_count(topic_name) == 3
    admin.delete_topic(topic_name)
    wait_until(lambda: topic_name not in admin.topics(), "the topic is gone")


# aiokafka itself refuses to leave both to the broker.
@pytest.mark.parametrize("admin", ["confluent-kafka", "kafka-python"], indirect=True)
def test_topic_takes_the_brokers_defaults(admin: Admin, topic_name: str) -> None:
    admin.create_topic(topic_name, partitions=-1, replication=-1)
    wait_until(lambda: admin.partition_count(topic_name) == 1, "one partition")


def test_partitions_are_added(admin: Admin, topic: str, bootstrap: str) -> None:
    admin.add_partitions(topic, 5)
    wait_until(lambda: admin.partition_count(topic) == 5, "five partitions")
    client = ConfluentClient(bootstrap)
    assert client.produce(topic, [Message(b"in the new one", partition=4)]) == [0]
    assert client.read(topic, 1, partition=4)[0].value == b"in the new one"


def test_topic_config_has_kafkas_defaults(admin: Admin, topic: str) -> None:
    config = admin.topic_config(topic)
    assert {key: config[key] for key in DEFAULTS} == DEFAULTS


def test_topic_config_is_set_at_creation(admin: Admin, topic_name: str) -> None:
    admin.create_topic(topic_name, configs=MODIFIED)
    wait_until(lambda: topic_name in admin.topics(), "the new topic")
    config = admin.topic_config(topic_name)
    assert {key: config[key] for key in MODIFIED} == MODIFIED


# kafka-python itself adds the settings it was not given.
@pytest.mark.parametrize("admin", ["confluent-kafka", "aiokafka"], indirect=True)
def test_alter_configs_replaces_all(admin: Admin, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"segment.ms": "7777777", "retention.ms": "1"})
    admin.replace_config(topic, {"retention.ms": "5000"})
    wait_until(lambda: admin.topic_config(topic)["retention.ms"] == "5000", "the new retention")
    assert admin.topic_config(topic)["segment.ms"] == "604800000"


def test_records_are_deleted_up_to_an_offset(admin: Admin, topic: str, bootstrap: str) -> None:
    client = ConfluentClient(bootstrap)
    client.produce(topic, numbered(20))
    assert admin.delete_records(topic, 15) == 15
    assert client.offset_range(topic) == (15, 20)
    assert admin.delete_records(topic, -1) == 20
    assert client.offset_range(topic) == (20, 20)


def test_cluster_names_its_one_node(admin: Admin, bootstrap: str) -> None:
    cluster = admin.cluster()
    assert cluster.cluster_id
    assert list(cluster.nodes.values()) == [bootstrap]
    assert cluster.controller in cluster.nodes


def _incremental(admin: KafkaPythonAdmin, topic: str, changes: Mapping[str, object]) -> None:
    admin.library.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, changes)], incremental=True)


def test_incremental_changes_leave_the_rest(
    kafka_python_admin: KafkaPythonAdmin, make_topic: MakeTopic
) -> None:
    topic = make_topic(configs={"segment.ms": "7777777", "retention.ms": "5000", "cleanup.policy": "delete"})
    changes = {
        "retention.ms": ("DELETE", None),
        "cleanup.policy": ("APPEND", "compact"),
        "segment.bytes": "2000000",
    }
    _incremental(kafka_python_admin, topic, changes)
    wait_until(lambda: kafka_python_admin.topic_config(topic)["segment.bytes"] == "2000000", "the change")
    config = kafka_python_admin.topic_config(topic)
    assert (config["segment.ms"], config["retention.ms"]) == ("7777777", "604800000")
    assert config["cleanup.policy"] == "delete,compact"
    _incremental(kafka_python_admin, topic, {"cleanup.policy": ("SUBTRACT", "delete")})
    wait_until(
        lambda: kafka_python_admin.topic_config(topic)["cleanup.policy"] == "compact", "the subtraction"
    )


def test_describe_log_dirs_counts_the_bytes(
    kafka_python_admin: KafkaPythonAdmin, topic: str, bootstrap: str
) -> None:
    ConfluentClient(bootstrap).produce(topic, numbered(100))
    (answer,) = kafka_python_admin.library.describe_log_dirs([topic])
    (log_dir,) = [each for each in answer["log_dirs"] if each["topics"]]
    assert log_dir["error_code"] == 0
    (partition,) = log_dir["topics"][0]["partitions"]
    assert partition["partition_size"] > 1000
    assert partition["offset_lag"] == 0


def test_describe_producers_shows_the_idempotent_one(
    kafka_python_admin: KafkaPythonAdmin, topic: str, bootstrap: str
) -> None:
    ConfluentClient(bootstrap).produce(topic, numbered(3), Sending(idempotent=True))
    (state,) = kafka_python_admin.library.describe_producers([TopicPartition(topic, 0)]).values()
    (producer,) = state.active_producers
    assert producer.last_sequence == 2
    assert producer.producer_epoch == 0


def test_describe_topic_partitions(kafka_python_admin: KafkaPythonAdmin, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=4)
    answer = kafka_python_admin.library.describe_topic_partitions([topic])
    (described,) = answer["topics"]
    assert [partition["partition_index"] for partition in described["partitions"]] == [0, 1, 2, 3]
    assert all(partition["isr_nodes"] == partition["replica_nodes"] for partition in described["partitions"])


def test_list_config_resources_knows_the_topic(
    kafka_python_admin: KafkaPythonAdmin, make_topic: MakeTopic
) -> None:
    topic = make_topic(configs={"retention.ms": "99999"})
    library = kafka_python_admin.library
    wait_until(lambda: topic in str(library.list_config_resources(["TOPIC"])), "the new topic")


def test_maximum_timestamp_offset(kafka_python_admin: KafkaPythonAdmin, topic: str, bootstrap: str) -> None:
    times = (1_700_000_000_000, 1_700_000_009_000, 1_700_000_001_000)
    ConfluentClient(bootstrap).produce(topic, [Message(b"v", timestamp_ms=at) for at in times])
    where = TopicPartition(topic, 0)
    listed = kafka_python_admin.library.list_partition_offsets({where: OffsetSpec.MAX_TIMESTAMP})[where]
    assert (listed.offset, listed.timestamp) == (1, 1_700_000_009_000)
