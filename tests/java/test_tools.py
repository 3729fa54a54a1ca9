"""Kafka's own command-line tools, run from its jars."""

import json
import re
import uuid
from pathlib import Path

import pytest
from tests.java.tools import Tools

pytestmark = pytest.mark.java


@pytest.fixture
def tools(bootstrap: str) -> Tools:
    return Tools(bootstrap)


@pytest.fixture
def topic(tools: Tools) -> str:
    name = f"tools-{uuid.uuid4().hex[:8]}"
    tools(
        "kafka-topics", "--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=86400000"
    )
    return name


def test_topics(tools: Tools, topic: str) -> None:
    assert topic in tools("kafka-topics", "--list").split()
    described = tools("kafka-topics", "--describe", "--topic", topic)
    assert re.search(
        r"PartitionCount:\s*2\s+ReplicationFactor:\s*1\s+Configs:.*retention.ms=86400000", described
    )
    assert re.search(r"Partition: 1\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+", described)
    tools("kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in tools("kafka-topics", "--describe", "--topic", topic)
    assert "already exists" in tools.refused("kafka-topics", "--create", "--topic", topic)
    assert tools("kafka-topics", "--describe", "--under-replicated-partitions").strip() == ""
    tools("kafka-topics", "--delete", "--topic", topic)
    assert topic not in tools("kafka-topics", "--list").split()


def test_topic_configs(tools: Tools, topic: str) -> None:
    entity = ("--entity-type", "topics", "--entity-name", topic)
    tools(
        "kafka-configs",
        "--alter",
        *entity,
        "--add-config",
        "segment.ms=777777,cleanup.policy=[compact,delete]",
    )
    described = tools("kafka-configs", "--describe", *entity)
    assert "segment.ms=777777" in described
    assert "cleanup.policy=compact,delete" in described
    tools("kafka-configs", "--alter", *entity, "--delete-config", "segment.ms")
    assert "segment.ms=777777" not in tools("kafka-configs", "--describe", *entity)
    assert "segment.ms=604800000" in tools("kafka-configs", "--describe", "--all", *entity)


def test_broker_configs(tools: Tools) -> None:
    everyone = ("--entity-type", "brokers", "--entity-default")
    tools("kafka-configs", "--alter", *everyone, "--add-config", "log.cleaner.backoff.ms=15003")
    assert "log.cleaner.backoff.ms=15003" in tools("kafka-configs", "--describe", *everyone)
    tools("kafka-configs", "--alter", *everyone, "--delete-config", "log.cleaner.backoff.ms")
    assert "log.cleaner.backoff.ms=15003" not in tools("kafka-configs", "--describe", *everyone)


def test_console_producer_and_consumer(tools: Tools, topic: str) -> None:
    lines = "".join(f"key{number}:line {number}\n" for number in range(20))
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    tools("kafka-topics", "--create", "--topic", f"{topic}-one", "--partitions", "1")
    tools(
        "kafka-console-producer",
        "--topic",
        f"{topic}-one",
        *keyed,
        "--compression-codec",
        "zstd",
        stdin=lines,
    )
    where = ("--topic", f"{topic}-one", "--partition", "0")
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "key.separator=:")
    whole = tools("kafka-console-consumer", *where, "--offset", "earliest", "--max-messages", "20", *shown)
    assert whole == lines
    tail = tools("kafka-console-consumer", *where, "--offset", "18", "--max-messages", "2", *shown)
    assert tail == "key18:line 18\nkey19:line 19\n"


def test_offsets_and_deletion(tools: Tools, topic: str, tmp_path: Path) -> None:
    tools("kafka-console-producer", "--topic", topic, stdin="".join(f"{number}\n" for number in range(30)))
    rows = dict(line.rsplit(":", 1) for line in tools("kafka-get-offsets", "--topic", topic).split())
    assert sum(int(end) for end in rows.values()) == 30
    partition, end = next(
        (int(name.rsplit(":", 1)[1]), int(end)) for name, end in rows.items() if int(end) > 1
    )
    request = tmp_path / "delete.json"
    entry = {"topic": topic, "partition": partition, "offset": end - 1}
    request.write_text(json.dumps({"partitions": [entry], "version": 1}))
    assert f"low_watermark: {end - 1}" in tools("kafka-delete-records", "--offset-json-file", str(request))
    only = ("--topic-partitions", f"{topic}:{partition}")
    assert tools("kafka-get-offsets", *only, "--time", "earliest").strip() == f"{topic}:{partition}:{end - 1}"


def test_log_dirs(tools: Tools, topic: str) -> None:
    output = tools("kafka-log-dirs", "--describe", "--topic-list", topic)
    answer = json.loads(output.strip().splitlines()[-1])
    partitions = [
        part["partition"] for node in answer["brokers"] for d in node["logDirs"] for part in d["partitions"]
    ]
    assert sorted(partitions) == [f"{topic}-0", f"{topic}-1"]
    assert all(d["error"] is None for node in answer["brokers"] for d in node["logDirs"])


def test_broker_api_versions(tools: Tools, bootstrap: str) -> None:
    output = tools("kafka-broker-api-versions")
    assert output.startswith(bootstrap)
    for row in (
        "Produce(0): 0 to 13",
        "Fetch(1): 4 to 18",
        "ListOffsets(2): 1 to 11",
        "Metadata(3): 0 to 13",
    ):
        assert row in output
    # Telemetry is not offered: a broker that does not fully support it would make clients ask without end.
    assert "GetTelemetrySubscriptions(71): UNSUPPORTED" in output


def test_cluster_id(tools: Tools) -> None:
    assert re.search(
        r"Cluster ID: \S+", tools.bare("kafka-cluster", "cluster-id", "--bootstrap-server", tools.bootstrap)
    )


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_producer_perf_test(tools: Tools, topic: str, bootstrap: str, codec: str) -> None:
    output = tools.bare(
        "kafka-producer-perf-test",
        *(
            "--bootstrap-server",
            bootstrap,
            "--topic",
            topic,
            "--num-records",
            "20000",
            "--record-size",
            "100",
        ),
        *("--throughput", "-1", "--command-property", f"compression.type={codec}", "acks=all"),
    )
    assert "20000 records sent" in output
    rows = tools("kafka-get-offsets", "--topic", topic).split()
    assert sum(int(row.rsplit(":", 1)[1]) for row in rows) == 20_000
