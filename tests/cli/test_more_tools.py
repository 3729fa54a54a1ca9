"""Tools that a Kafka user types, and that matter less here. tests/kafka_tools compares most of them with
Kafka's."""

import json
import uuid
from pathlib import Path

import pytest
from tests.cli.conftest import Run

import barnabas
from barnabas.client.admin import NewTopic


@pytest.fixture
def topic(admin: barnabas.Admin, topic_name: str) -> str:
    admin.create_topics([NewTopic(topic_name, 2, 1)])
    return topic_name


def test_verifiable_clients(run: Run, bootstrap: str, topic: str) -> None:
    at = ("--bootstrap-server", bootstrap, "--topic", topic, "--max-messages", "5")
    sent = run("verifiable-producer", *at, "--repeating-keys", "2", "--message-create-time", "1000")
    events = [json.loads(line) for line in sent.lines]
    assert [event["name"] for event in events] == [
        "startup_complete",
        *["producer_send_success"] * 5,
        "shutdown_complete",
        "tool_data",
    ]
    assert sorted((event["key"], event["value"]) for event in events[1:6]) == [
        ("0", "0"),
        ("0", "2"),
        ("0", "4"),
        ("1", "1"),
        ("1", "3"),
    ]
    assert (events[-1]["sent"], events[-1]["acked"]) == (5, 5)
    read = run("verifiable-consumer", *at, "--group-id", topic, "--group-protocol", "consumer", "--verbose")
    seen = [json.loads(line) for line in read.lines]
    assert sorted(event["value"] for event in seen if event["name"] == "record_data") == list("01234")
    assert all(event["success"] for event in seen if event["name"] == "offsets_committed")
    assert seen[-1]["name"] == "shutdown_complete"


def test_a_record_that_is_refused_is_an_event_and_an_exit_code(run: Run, bootstrap: str) -> None:
    at = ("--bootstrap-server", bootstrap, "--topic", "no such name", "--max-messages", "1")
    sent = run("verifiable-producer", *at)
    (failed,) = [json.loads(line) for line in sent.lines if "send_error" in line]
    assert sent.code == 1 and failed["topic"] == "no such name" and failed["message"]


def test_the_controller_instead_of_a_quorum(run: Run, bootstrap: str) -> None:
    at = ("metadata-quorum", "--bootstrap-server", bootstrap)
    assert "LeaderId:               1" in run(*at, "describe", "--status").lines
    assert run(*at, "describe", "--replication").lines[1].split() == ["1", "Leader", "no"]
    assert json.loads(run(*at, "describe", "--status", "--json").out)["leaderId"] == 1
    refused = run(*at, "remove-controller", "--controller-id", "1")
    assert refused.code == 1 and "There is no quorum of controllers" in refused.err


@pytest.mark.parametrize("tool", ["share-groups", "streams-groups"])
def test_groups_that_do_not_exist_are_listed_and_nothing_else(run: Run, bootstrap: str, tool: str) -> None:
    listed = run(tool, "--bootstrap-server", bootstrap, "--list")
    assert (listed.code, listed.out) == (0, "")
    assert "does not have them" in listed.err
    refused = run(tool, "--bootstrap-server", bootstrap, "--describe", "--group", "x")
    assert refused.code == 1 and refused.err.startswith("Error: Barnabas has no ")


def test_groups_as_json(run: Run, bootstrap: str, admin: barnabas.Admin, topic: str) -> None:
    offsets = {barnabas.TopicPartition(topic, 0): barnabas.OffsetAndMetadata(0)}
    admin.alter_consumer_group_offsets(topic, offsets)
    groups = json.loads(run("groups", "--bootstrap-server", bootstrap, "--list", "--json").out)
    assert {"group": topic, "type": "Classic", "protocol": ""} in groups


def test_a_streams_application_with_members_is_not_reset(run: Run, bootstrap: str, topic: str) -> None:
    group = f"streams-{uuid.uuid4().hex[:8]}"
    with barnabas.Consumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        at = ("--bootstrap-server", bootstrap, "--application-id", group, "--input-topics", topic)
        refused = run("streams-application-reset", *at)
    assert refused.code == 1 and f"Consumer group '{group}' is still active" in refused.err
    assert run("streams-application-reset", *at).lines[-1] == "Done."


def test_storage_of_a_broker_with_zookeeper_is_left_to_the_start(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"zookeeper.connect=localhost:1\nlog.dirs={tmp_path}/data\n")
    refused = run("storage", "format", "-t", "x", "-c", str(file))
    assert refused.code == 1 and "The id of a cluster with ZooKeeper is in ZooKeeper" in refused.err
    assert run("storage", "info", "-c", str(file)).lines == [
        "Found problem:",
        f"  {tmp_path}/data does not exist",
        "",
    ]


def test_there_is_no_share_consumer(run: Run) -> None:
    refused = run("console-share-consumer", "--bootstrap-server", "localhost:1", "--topic", "x")
    assert refused.code == 1 and "Barnabas has no share groups: read with" in refused.err
