"""get-offsets, delete-records, log-dirs, broker-api-versions and cluster print what Kafka's tools print."""

import json
from pathlib import Path

import pytest
from tests.kafka_tools.conftest import Compare

pytestmark = pytest.mark.java


@pytest.mark.parametrize(
    "arguments",
    [
        "--topic {topic}",
        "--topic {topic} --time -2",
        "--topic {topic} --time max-timestamp",
        "--topic {topic} --time earliest-local",
        "--topic {topic} --time latest-tiered",
        "--topic {topic} --time earliest-pending-upload",
        "--topic {topic} --time 1700000000004",
        "--topic {topic} --partitions 0,2",
        "--topic-partitions {topic}:1-,nothing:0",
        "--topic-partitions :0",
        "--topic nothing",
        "--topic {topic} --time soon",
        "--topic-partitions {topic}:x",
        "--topic-partitions {topic} --topic {topic}",
        "--exclude-internal-topics",
    ],
)
def test_offsets(same: Compare, topic: str, arguments: str) -> None:
    same("get-offsets", *arguments.format(topic=topic).split())


def test_deleting_records(same: Compare, topic: str, tmp_path: Path) -> None:
    request = tmp_path / "before.json"
    request.write_text(
        json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": 4}], "version": 1})
    )
    deleted = same("delete-records", "--offset-json-file", str(request))
    assert deleted.lines[2] == f"partition: {topic}-0\tlow_watermark: 4"
    same("get-offsets", "--topic", topic, "--time", "earliest")


@pytest.mark.parametrize("text", ["{", '{"partitions": [], "version": 2}'])
def test_deleting_records_by_a_wrong_file(same: Compare, tmp_path: Path, text: str) -> None:
    request = tmp_path / "before.json"
    request.write_text(text)
    assert same("delete-records", "--offset-json-file", str(request)).code == 1


@pytest.mark.parametrize("arguments", ["--topic-list {topic}", "", "--broker-list 1,7"])
def test_directories(same: Compare, topic: str, arguments: str) -> None:
    same("log-dirs", "--describe", *arguments.format(topic=topic).split())


def test_partition_reassignments(same: Compare) -> None:
    assert same("reassign-partitions", "--list").lines == ["No partition reassignments found."]


def test_versions_of_requests(same: Compare) -> None:
    assert len(same("broker-api-versions").lines) > 60


@pytest.mark.parametrize(
    "arguments", ["cluster-id", "list-endpoints", "list-endpoints --include-fenced-brokers"]
)
def test_cluster(same: Compare, arguments: str) -> None:
    same("cluster", *arguments.split())
