"""From one broker to a cluster: adopt its metadata, add brokers, spread partitions, lose the first broker."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster.reading import check_order, check_written
from tests.cluster.writers import Writer

import barnabas
from barnabas.cli.main import main
from barnabas.client.admin import Admin, NewTopic
from barnabas.client.types import OffsetAndMetadata, TopicPartition
from barnabas.testing import Broker
from barnabas.testing.cluster import CLUSTER_TEST_DEFAULTS
from barnabas.testing.zookeeper import ZooKeeper

TOPIC = "orders"
PARTITIONS = 3
PLACES = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
Contents = dict[tuple[int, int], bytes]


def contents(bootstrap: str) -> Contents:
    """All records of the topic, by partition and offset."""
    records: Contents = {}
    with barnabas.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(PLACES)
        count = sum(consumer.end_offsets(PLACES).values())
        while len(records) < count:
            for record in consumer.poll(10.0):
                records[record.partition, record.offset] = record.value or b""
    return records


def committed(bootstrap: str) -> dict[TopicPartition, int]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_consumer_group_offsets("readers")
    return {place: offset.offset for place, offset in offsets.items() if offset is not None}


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline, f"expected: {what}"
        time.sleep(0.1)


def fill(bootstrap: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, {"retention.ms": "987654321"})])
    with barnabas.Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(300):
            producer.send(TOPIC, value=f"alone {number}".encode(), partition=number % PARTITIONS)
        producer.flush()
    with barnabas.Consumer(bootstrap_servers=bootstrap, group_id="readers") as consumer:
        consumer.assign(PLACES)
        consumer.commit_sync({place: OffsetAndMetadata(42) for place in PLACES})


def spread(bootstrap: str, path: Path) -> None:
    """Give every partition of every topic, also of the internal ones, three replicas."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        names = admin.list_topics(include_internal=True)
        described = admin.describe_topics(list(names))
    moves = [
        {"topic": name, "partition": number, "replicas": [2 + number % 2, 3 - number % 2, 1]}
        for name, topic in described.items()
        for number in range(len(topic.partitions))
    ]
    path.write_text(json.dumps({"version": 1, "partitions": moves}))
    command = ["reassign-partitions", "--bootstrap-server", bootstrap, "--reassignment-json-file", str(path)]
    assert main([*command, "--execute"]) == 0

    def is_done() -> bool:
        with Admin(bootstrap_servers=bootstrap) as admin:
            return not admin.list_partition_reassignments()

    wait_until(is_done, "the partitions have three replicas")


def test_a_broker_grows_into_a_cluster_and_loses_nothing(tmp_path: Path) -> None:
    one = tmp_path / "one"
    with Broker(CLUSTER_TEST_DEFAULTS, data_dir=one, subprocess=True) as alone:
        fill(alone.bootstrap)
        before = contents(alone.bootstrap)
        with Admin(bootstrap_servers=alone.bootstrap) as admin:
            topic_id = admin.describe_topics([TOPIC])[TOPIC].topic_id
    assert len(before) == 300
    with ZooKeeper() as zookeeper:
        connect = f"{zookeeper.connect}/grown"
        assert main(["cluster", "adopt", "--data-dir", str(one), "--zookeeper", connect]) == 0
        settings = CLUSTER_TEST_DEFAULTS | {"zookeeper.connect": connect}
        directories = {1: one, 2: tmp_path / "two", 3: tmp_path / "three"}
        brokers = {
            number: Broker(settings | {"broker.id": str(number)}, data_dir=directory, subprocess=True)
            for number, directory in directories.items()
        }
        try:
            for broker in brokers.values():
                broker.start()
            bootstrap = ",".join(broker.bootstrap for broker in brokers.values())
            assert contents(bootstrap) == before
            writer = Writer("barnabas", bootstrap, TOPIC, PARTITIONS)
            writer.wait_for(30)
            spread(bootstrap, tmp_path / "moves.json")
            writer.wait_for(30)
            brokers[1].kill()
            writer.wait_for(60)
            writer.stop()
            after = contents(bootstrap)
            assert {place: after[place] for place in before} == before
            new = [after[place] for place in sorted(after) if place not in before]
            check_written(new, writer.acknowledged)
            for number in range(PARTITIONS):
                check_order([after[place] for place in sorted(after) if place[0] == number])
            assert committed(bootstrap) == dict.fromkeys(PLACES, 42)
            with Admin(bootstrap_servers=bootstrap) as admin:
                assert admin.describe_topics([TOPIC])[TOPIC].topic_id == topic_id
        finally:
            for broker in brokers.values():
                broker.stop()
