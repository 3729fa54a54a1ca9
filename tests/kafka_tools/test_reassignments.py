"""reassign-partitions and leader-election print what Kafka's tools print."""

import json
from pathlib import Path

import pytest
from tests.kafka_tools.conftest import Compare

pytestmark = pytest.mark.java


def reassignment(path: Path, topic: str, replicas: list[int], partitions: int = 3) -> str:
    entries = [
        {"topic": topic, "partition": number, "replicas": replicas, "log_dirs": ["any"] * len(replicas)}
        for number in range(partitions)
    ]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return str(path)


def test_a_move_is_proposed_started_verified_and_cancelled(same: Compare, topic: str, tmp_path: Path) -> None:
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    generated = same(
        "reassign-partitions", "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1"
    )
    assert generated.lines[0] == "Current partition replica assignment"
    moves = reassignment(tmp_path / "moves.json", topic, [1])
    arguments = ["--reassignment-json-file", moves]
    started = same("reassign-partitions", "--execute", *arguments, "--throttle", "1000")
    assert (
        started.lines[-1] == f"Successfully started partition reassignments for {topic}-0,{topic}-1,{topic}-2"
    )
    # Both have set the same limits.
    same("topics", "--describe", "--topic", topic)
    same("reassign-partitions", "--verify", *arguments, "--preserve-throttles")
    verified = same("reassign-partitions", "--verify", *arguments)
    assert verified.lines[-1] == f"Clearing topic-level throttles on topic {topic}"
    same("topics", "--describe", "--topic", topic)
    # Without --preserve-throttles Kafka's tool forgets a line end.
    same("reassign-partitions", "--cancel", *arguments, "--preserve-throttles")


def test_other_replicas_than_those_of_the_file_are_reported(
    same: Compare, topic: str, tmp_path: Path
) -> None:
    moves = reassignment(tmp_path / "moves.json", topic, [1, 2], partitions=1)
    verified = same(
        "reassign-partitions", "--verify", "--reassignment-json-file", moves, "--preserve-throttles"
    )
    assert "but replica set is 1 rather than 1,2." in verified.lines[1]
    moves = reassignment(tmp_path / "moves.json", "nothing", [1], partitions=1)
    same("reassign-partitions", "--verify", "--reassignment-json-file", moves, "--preserve-throttles")


@pytest.mark.parametrize("which", ["--topic {topic} --partition 0", "--path-to-json-file {file}"])
def test_a_preferred_leader_that_leads_already(same: Compare, topic: str, tmp_path: Path, which: str) -> None:
    file = tmp_path / "partitions.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0}]}))
    elected = same(
        "leader-election", "--election-type", "preferred", *which.format(topic=topic, file=file).split()
    )
    assert elected.lines == [f"Valid replica already elected for partitions {topic}-0"]


def test_all_leaders_are_preferred_ones(same: Compare, topic: str) -> None:
    assert same("leader-election", "--election-type", "preferred", "--all-topic-partitions").code == 0
