"""metadata dump, and cluster adopt: a single broker becomes the first one of a cluster."""

import json
import secrets
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.support.zookeeper import zookeeper

import barnabas
from barnabas.client.admin.types import AlterConfigOp, ConfigResource, ConfigResourceType, NewTopic
from barnabas.metadata.store import StoreError
from barnabas.testing import Broker

RECORDS = [f"value-{number}".encode() for number in range(200)]


def fill(broker: Broker) -> None:
    with barnabas.Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("orders", 3, configs={"retention.ms": "123456789"})])
        password = AlterConfigOp("listener.name.internal.ssl.key.password", "secret-word")
        admin.incremental_alter_configs({ConfigResource(ConfigResourceType.BROKER, "1"): [password]})
    with barnabas.Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value in RECORDS:
            producer.send("orders", value)
        producer.flush()


def contents(broker: Broker) -> tuple[set[bytes | None], object]:
    with barnabas.Admin(bootstrap_servers=broker.bootstrap) as admin:
        cluster_id = admin.describe_cluster().cluster_id
    with barnabas.Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([barnabas.TopicPartition("orders", number) for number in range(3)])
        values: set[bytes | None] = set()
        while len(values) < len(RECORDS):
            values |= {record.value for record in consumer.poll(1.0)}
    return values, cluster_id


@pytest.fixture
def connect() -> str:
    return f"{zookeeper().connect}/adopt/{secrets.token_hex(4)}"


def test_a_dump_of_a_directory_shows_the_state_and_the_log(run: Run, tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        fill(broker)
        state = run("metadata", "dump", "--data-dir", str(tmp_path))
        assert state.code == 0
        assert "active" in state.out and f"PLAINTEXT://127.0.0.1:{broker.port}" in state.out
        assert [line.split()[:5] for line in state.lines if line.startswith("orders-")] == [
            [f"orders-{number}", "1", "0", "1", "1"] for number in range(3)
        ]
        assert "retention.ms" in state.out and "123456789" in state.out
        as_json = json.loads(run("metadata", "dump", "--data-dir", str(tmp_path), "--json").out)
        assert [record["name"] for record in as_json["records"] if record["type"] == "topic"] == ["orders"]
        log = run("metadata", "dump", "--data-dir", str(tmp_path), "--log")
        assert any("topic name=orders" in line for line in log.lines)
        batches = json.loads(run("metadata", "dump", "--data-dir", str(tmp_path), "--log", "--json").out)
        assert batches[0]["offset"] == 0
        for flags in ([], ["--json"], ["--log"], ["--log", "--json"]):
            assert "secret-word" not in run("metadata", "dump", "--data-dir", str(tmp_path), *flags).out


def test_the_error_of_a_dump_without_metadata_is_one_sentence(run: Run, tmp_path: Path, connect: str) -> None:
    ran = run("metadata", "dump", "--data-dir", str(tmp_path))
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "There is no metadata in" in ran.err
    ran = run("metadata", "dump", "--zookeeper", connect)
    assert (ran.code, ran.err) == (1, f"Error: there is no cluster in ZooKeeper at {connect}.\n")


def test_a_single_broker_becomes_the_first_of_a_cluster(run: Run, tmp_path: Path, connect: str) -> None:
    with Broker(data_dir=tmp_path) as alone:
        fill(alone)
        values, cluster_id = contents(alone)
        refused = run("cluster", "adopt", "--data-dir", str(tmp_path), "--zookeeper", connect)
        assert refused.code == 1 and "another broker is using the metadata" in refused.err
    before = json.loads(run("metadata", "dump", "--data-dir", str(tmp_path), "--json").out)

    refused = run("cluster", "adopt", "--data-dir", str(tmp_path), "--zookeeper", connect)
    assert refused.code == 1 and "set password.encoder.secret" in refused.err

    properties = tmp_path / "server.properties"
    properties.write_text("password.encoder.secret=the-secret\n")
    adopted = run(
        "cluster", "adopt", "--data-dir", str(tmp_path), "--zookeeper", connect, "--config", str(properties)
    )
    assert adopted.code == 0, adopted.err
    assert f"Cluster {cluster_id} with 1 topics is in ZooKeeper at {connect}." in adopted.out
    assert json.loads(run("metadata", "dump", "--zookeeper", connect, "--json").out) == before
    assert f"use --zookeeper {connect}" in run("metadata", "dump", "--data-dir", str(tmp_path)).err

    again = run("cluster", "adopt", "--data-dir", str(tmp_path), "--zookeeper", connect)
    assert again.code == 1 and "there is a cluster in ZooKeeper" in again.err
    with pytest.raises(StoreError, match=r"set zookeeper\.connect"), Broker(data_dir=tmp_path):
        pytest.fail("the directory belongs to a cluster")

    with Broker({"zookeeper.connect": connect}, data_dir=tmp_path) as member:
        assert contents(member) == (values, cluster_id)
        after = json.loads(run("metadata", "dump", "--zookeeper", connect, "--json").out)
        for kind in ("topic", "config"):
            assert [record for record in after["records"] if record["type"] == kind] == [
                record for record in before["records"] if record["type"] == kind
            ]
    elsewhere = run("cluster", "adopt", "--data-dir", str(tmp_path), "--zookeeper", connect + "-2")
    assert elsewhere.code == 1 and "belongs to the cluster in ZooKeeper at" in elsewhere.err


def test_adopting_refuses_a_path_with_a_cluster_and_a_directory_without_metadata(
    run: Run, tmp_path: Path, connect: str
) -> None:
    missing = run("cluster", "adopt", "--data-dir", str(tmp_path / "none"), "--zookeeper", connect)
    assert missing.code == 1 and "there is no metadata of a single broker in" in missing.err
    for name in ("a", "b"):
        with Broker(data_dir=tmp_path / name):
            pass
    assert run("cluster", "adopt", "--data-dir", str(tmp_path / "a"), "--zookeeper", connect).code == 0
    taken = run("cluster", "adopt", "--data-dir", str(tmp_path / "b"), "--zookeeper", connect)
    assert taken.code == 1 and "choose another path" in taken.err
    # The refused directory can still be used by a broker that runs alone.
    with Broker(data_dir=tmp_path / "b"):
        pass
