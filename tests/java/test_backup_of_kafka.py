"""`barnabas backup` of a cluster of Apache Kafka, restored into one of ours and into Kafka again."""

from pathlib import Path
from typing import Any

import pytest
from tests.clients.broker_process import running_broker
from tests.java.kafka_server import running_kafka

import barnabas
from barnabas.cli.backup import appending
from barnabas.cli.backup.appending import PartitionRestore
from barnabas.cli.main import main
from barnabas.client.admin import NewTopic
from barnabas.client.errors import ErrorCode, KafkaError

pytestmark = pytest.mark.java


def produce(bootstrap: str) -> None:
    with barnabas.Producer(
        bootstrap_servers=bootstrap, compression_type="zstd", linger_ms=20, batch_size=1000
    ) as producer:
        for number in range(500):
            headers = [("number", b"%d" % number)]
            producer.send("orders", b"value", b"key %d" % number, timestamp=1000 + number, headers=headers)
    for is_committed in (False, True):
        settings = {"bootstrap_servers": bootstrap, "transactional_id": f"mover-{is_committed}"}
        with barnabas.Producer(**settings) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("orders", b"committed" if is_committed else b"aborted")
            producer.flush()
            if is_committed:
                producer.commit_transaction()
            else:
                producer.abort_transaction()


def rows(bootstrap: str, topic: str) -> list[tuple[Any, ...]]:
    partition = barnabas.TopicPartition(topic, 0)
    with barnabas.Consumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        found: list[tuple[Any, ...]] = []
        while consumer.position(partition) < end:
            for record in consumer.poll(1.0):
                found.append((record.timestamp, record.key, record.value, list(record.headers)))
        return found


def interrupted(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore some batches, which are sent one by one, and fail."""
    append = PartitionRestore._append
    sent: list[int] = []

    def fail_later(job: PartitionRestore, window: list[appending.Sendable]) -> None:
        if len(sent) == 2:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION)
        sent.append(len(window))
        append(job, window)

    with monkeypatch.context() as patch:
        patch.setattr(appending, "WINDOW_BYTES", 1)
        patch.setattr(PartitionRestore, "_append", fail_later)
        assert main(command) == 1


def test_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "backup")
    with running_kafka(tmp_path / "kafka", {}) as kafka, running_broker(tmp_path / "ours") as ours:
        with barnabas.Admin(bootstrap_servers=kafka.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 1, 1, {"retention.ms": "-1"})])
            produce(kafka.bootstrap)
            # 500 records, an aborted one and its marker: the committed one is at 502.
            admin.alter_consumer_group_offsets("billing", {barnabas.TopicPartition("orders", 0): 502})
        before = rows(kafka.bootstrap, "orders")
        assert len(before) == 501
        assert (
            main(["backup", "--bootstrap-server", kafka.bootstrap, "--to", place, "--topic", "orders"]) == 0
        )
        for bootstrap, prefix in ((ours.bootstrap, ""), (kafka.bootstrap, "again.")):
            command = ["restore", "--bootstrap-server", bootstrap, "--from", place, "--prefix", prefix]
            interrupted(command, monkeypatch)
            # The first one goes on after what is there, the second one finds everything.
            assert [main(command), main(command)] == [0, 0]
            assert rows(bootstrap, f"{prefix}orders") == before
            with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
                committed = admin.list_consumer_group_offsets("billing")
            assert committed[barnabas.TopicPartition(f"{prefix}orders", 0)].offset == 500
