"""reassign-partitions and leader-election on one broker; tests/kafka_tools compares them with Kafka's."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

import barnabas
from barnabas.client.admin import NewTopic


@pytest.fixture
def server(bootstrap: str) -> tuple[str, str]:
    return "--bootstrap-server", bootstrap


@pytest.fixture
def topic(admin: barnabas.Admin, topic_name: str) -> str:
    admin.create_topics([NewTopic(topic_name, 2)])
    return topic_name


def written(path: Path, document: Any) -> str:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


def moves_to(topic: str, *replicas: int) -> dict[str, Any]:
    entries = [{"topic": topic, "partition": number, "replicas": list(replicas)} for number in (0, 1)]
    return {"version": 1, "partitions": entries}


def test_a_proposal_can_be_executed_and_verified(
    run: Run, server: tuple[str, str], topic: str, tmp_path: Path
) -> None:
    topics = written(tmp_path / "topics.json", {"version": 1, "topics": [{"topic": topic}]})
    proposed = run(
        "reassign-partitions",
        *server,
        "--generate",
        "--topics-to-move-json-file",
        topics,
        "--broker-list",
        "1",
    )
    moves = written(tmp_path / "moves.json", proposed.lines[-1])
    started = run("reassign-partitions", *server, "--execute", "--reassignment-json-file", moves)
    assert (started.code, started.err) == (0, "")
    assert started.lines[-1] == f"Successfully started partition reassignments for {topic}-0,{topic}-1"
    verified = run("reassign-partitions", *server, "--verify", "--reassignment-json-file", moves)
    assert verified.lines == [
        "Status of partition reassignment:",
        f"Reassignment of partition {topic}-0 is completed.",
        f"Reassignment of partition {topic}-1 is completed.",
        "",
        "Clearing broker-level throttles on broker 1",
        f"Clearing topic-level throttles on topic {topic}",
    ]


def test_throttles_are_set_while_partitions_move_and_removed_afterwards(
    run: Run, server: tuple[str, str], topic: str, tmp_path: Path
) -> None:
    moves = written(tmp_path / "moves.json", moves_to(topic, 1))
    arguments = ("--reassignment-json-file", moves)
    run("reassign-partitions", *server, "--execute", *arguments, "--throttle", "5000")
    described = run("configs", *server, "--describe", "--topic", topic)
    assert "leader.replication.throttled.replicas=0:1,1:1 " in described.out
    assert (
        "leader.replication.throttled.rate=5000" in run("configs", *server, "--describe", "--broker", "1").out
    )
    cancelled = run("reassign-partitions", *server, "--cancel", *arguments)
    assert cancelled.lines[:2] == [
        "None of the specified partition reassignments are active.",
        "None of the specified partition moves are active.",
    ]
    assert "throttled" not in run("configs", *server, "--describe", "--topic", topic).out
    assert "throttled" not in run("configs", *server, "--describe", "--broker", "1").out


@pytest.mark.parametrize(
    "document, message",
    [
        ("{", "is not valid JSON"),
        ("[]", "must contain a JSON object"),
        ({"version": 2}, "Not supported version field value 2"),
        ({"partitions": []}, "Partition reassignment list cannot be empty"),
        ({"partitions": [1]}, "'partitions' must be a list of objects"),
        ({"partitions": [{"topic": "t", "partition": 0}]}, "needs a field 'replicas'"),
        ({"partitions": [{"topic": "t", "partition": 0, "replicas": ["1"]}]}, "a list of broker ids"),
        ({"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}, "replica list cannot be empty"),
        (
            {"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]},
            "t-0 contains multiple entries",
        ),
        (
            {"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}] * 2},
            "duplicate topic partitions: t-0",
        ),
        (
            {"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": []}]},
            "is different from size of log dirs list",
        ),
        ({"partitions": [{"topic": "t", "partition": 0, "replicas": [7]}]}, "Unknown broker id 7"),
        ({"partitions": [{"topic": "nothing", "partition": 0, "replicas": [1]}]}, "Topic nothing not found."),
    ],
)
def test_the_error_for_a_wrong_reassignment_is_one_sentence(
    run: Run, server: tuple[str, str], tmp_path: Path, document: Any, message: str
) -> None:
    moves = written(tmp_path / "moves.json", document)
    ran = run("reassign-partitions", *server, "--execute", "--reassignment-json-file", moves)
    assert ran.code == 1 and message in ran.err and ran.err.count("\n") == 1


def test_a_partition_that_does_not_exist_is_named(
    run: Run, server: tuple[str, str], topic: str, tmp_path: Path
) -> None:
    entry = {"topic": topic, "partition": 9, "replicas": [1]}
    moves = written(tmp_path / "moves.json", {"partitions": [entry]})
    ran = run("reassign-partitions", *server, "--execute", "--reassignment-json-file", moves)
    assert (ran.code, ran.err) == (1, f"Error: Unable to find partition: {topic}-9\n")


@pytest.mark.parametrize(
    "topics, brokers, message",
    [
        (["t", "t"], "1", "duplicate entries: [t]"),
        (["t"], "1,1", "Broker list contains duplicate entries: [1]"),
        (["t"], "one", "expected broker ids"),
        (["nothing"], "1", "Topic nothing not found."),
    ],
)
def test_the_error_for_a_wrong_proposal_is_one_sentence(
    run: Run, server: tuple[str, str], tmp_path: Path, topics: list[str], brokers: str, message: str
) -> None:
    file = written(tmp_path / "topics.json", {"topics": [{"topic": topic} for topic in topics]})
    arguments = ("--topics-to-move-json-file", file, "--broker-list", brokers)
    ran = run("reassign-partitions", *server, "--generate", *arguments)
    assert ran.code == 1 and message in ran.err


def test_there_are_not_enough_brokers_for_a_proposal(
    run: Run, server: tuple[str, str], topic: str, tmp_path: Path
) -> None:
    file = written(tmp_path / "topics.json", {"topics": [{"topic": topic}]})
    arguments = ("--topics-to-move-json-file", file, "--broker-list", "7")
    ran = run("reassign-partitions", *server, "--generate", *arguments)
    assert ran.code == 1 and "replication factor 1 is larger than the number of brokers, 0" in ran.err


def test_a_preferred_leader_that_leads_already(
    run: Run, server: tuple[str, str], topic: str, tmp_path: Path
) -> None:
    entries = [{"topic": topic, "partition": 1}, {"topic": topic, "partition": 0}]
    file = written(tmp_path / "partitions.json", {"partitions": entries})
    ran = run("leader-election", *server, "--election-type", "preferred", "--path-to-json-file", file)
    assert (ran.code, ran.out) == (0, f"Valid replica already elected for partitions {topic}-0, {topic}-1\n")
    assert run("leader-election", *server, "--election-type", "PREFERRED", "--all-topic-partitions").code == 0


def test_an_election_of_an_unknown_partition_fails(run: Run, server: tuple[str, str]) -> None:
    election = ("--election-type", "unclean", "--topic", "nothing", "--partition", "0")
    ran = run("leader-election", *server, *election)
    assert (ran.code, ran.err) == (1, "Error: 1 replica(s) could not be elected\n")
    assert ran.out.startswith(
        "Error completing leader election (UNCLEAN) for partition: nothing-0: UNKNOWN_TOPIC_OR_PARTITION"
    )


@pytest.mark.parametrize("document", ["{", "[]", {"partitions": [{"topic": "t"}]}, {}])
def test_the_error_for_a_wrong_list_of_partitions_is_one_sentence(
    run: Run, server: tuple[str, str], tmp_path: Path, document: Any
) -> None:
    file = written(tmp_path / "partitions.json", document)
    ran = run("leader-election", *server, "--election-type", "preferred", "--path-to-json-file", file)
    assert ran.code == 1 and "must be JSON such as" in ran.err


def test_a_repeated_partition_is_refused(run: Run, server: tuple[str, str], tmp_path: Path) -> None:
    file = written(tmp_path / "partitions.json", {"partitions": [{"topic": "t", "partition": 0}] * 2})
    ran = run("leader-election", *server, "--election-type", "preferred", "--path-to-json-file", file)
    assert "contains duplicate partitions: t-0" in ran.err
