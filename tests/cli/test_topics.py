"""`barnabas topics` against a real broker: Kafka's lines, exit codes, JSON."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Ran, Run

import barnabas
from barnabas.client.admin import NewTopic


class Topics:
    def __init__(self, run: Run, bootstrap: str) -> None:
        self._run = run
        self._bootstrap = bootstrap

    def __call__(self, *arguments: str) -> Ran:
        return self._run("topics", "--bootstrap-server", self._bootstrap, *arguments)


@pytest.fixture
def topics(run: Run, bootstrap: str) -> Topics:
    return Topics(run, bootstrap)


@pytest.fixture
def topic_name(topic_name: str) -> str:
    """Without the dots and underscores of the test's name, because the tool warns about them."""
    return re.sub("[._]", "-", topic_name)


@pytest.fixture
def admin(bootstrap: str) -> Iterator[barnabas.Admin]:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        yield admin


@pytest.fixture
def topic(admin: barnabas.Admin, topic_name: str) -> str:
    """A topic of two partitions with a setting of its own."""
    admin.create_topics([NewTopic(topic_name, 2, 1, {"retention.ms": "86400000"})])
    return topic_name


def test_a_topic_is_created_with_the_given_settings(
    topics: Topics, admin: barnabas.Admin, topic_name: str
) -> None:
    made = topics(
        *("--create", "--topic", topic_name, "--partitions", "3", "--replication-factor", "1"),
        *("--config", "retention.ms=15552000000", "--config", "max.message.bytes=5242880"),
    )
    assert (made.code, made.out, made.err) == (0, f"Created topic {topic_name}.\n", "")
    described = topics("--describe", "--topic", topic_name)
    first = described.lines[0]
    assert re.fullmatch(
        rf"Topic: {topic_name}\tTopicId: \S{{22}}\tPartitionCount: 3\tReplicationFactor: 1\t"
        r"Configs: max.message.bytes=5242880,retention.ms=15552000000",
        first,
    )
    assert described.lines[1:] == [
        f"\tTopic: {topic_name}\tPartition: {number}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
        for number in range(3)
    ]


def test_an_existing_topic_is_an_error_without_if_not_exists(topics: Topics, topic: str) -> None:
    again = topics("--create", "--topic", topic)
    assert again.code == 1
    assert again.out == f"Error while executing topic command : topic '{topic}' already exists\n"
    assert topics("--create", "--topic", topic, "--if-not-exists") == Ran(0, "", "")


def test_replicas_may_be_assigned(topics: Topics, topic_name: str) -> None:
    assert topics("--create", "--topic", topic_name, "--replica-assignment", "1,1,1").code == 0
    assert "PartitionCount: 3" in topics("--describe", "--topic", topic_name).out
    assert (
        topics(
            "--alter", "--topic", topic_name, "--partitions", "5", "--replica-assignment", "1,1,1,1,1"
        ).code
        == 0
    )
    assert "PartitionCount: 5" in topics("--describe", "--topic", topic_name).out


def test_names_that_may_collide_print_a_warning(topics: Topics, topic_name: str) -> None:
    made = topics("--create", "--topic", f"{topic_name}.a")
    assert made.lines[0].startswith("WARNING: ")
    assert made.lines[1] == f"Created topic {topic_name}.a."


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--partitions", "0"], "The partitions must be greater than 0"),
        (["--replication-factor", "3"], "replication factor 3 is larger than the number of brokers, 1"),
        (["--config", "nope=1"], "nope is not a topic setting"),
        (["--config", "retention.ms=soon"], "retention.ms cannot be 'soon'"),
        (["--config", "nope"], "must be in the format KEY=VALUE"),
    ],
)
def test_a_topic_that_cannot_be_created_is_an_error(
    topics: Topics, topic_name: str, arguments: list[str], message: str
) -> None:
    refused = topics("--create", "--topic", topic_name, *arguments)
    assert refused.code == 1
    assert refused.out.startswith("Error while executing topic command : ")
    assert message in refused.out and refused.out.count("\n") == 1


def test_list_shows_all_or_chosen_topics(topics: Topics, topic: str, admin: barnabas.Admin) -> None:
    admin.create_topics([NewTopic(f"{topic}-b"), NewTopic(f"{topic}-a")])
    names = topics("--list").lines
    assert names == sorted(names) and {topic, f"{topic}-a", f"{topic}-b"} <= set(names)
    assert topics("--list", "--topic", f"{topic}-[ab]").lines == [f"{topic}-a", f"{topic}-b"]
    assert topics("--list", "--topic", f"{topic},{topic}-b").lines == [topic, f"{topic}-b"]


def test_list_as_json(topics: Topics, topic: str, admin: barnabas.Admin) -> None:
    (listed,) = json.loads(topics("--list", "--topic", topic, "--json").out)
    assert listed["topic"] == topic and listed["isInternal"] is False
    assert listed["topicId"] in topics("--describe", "--topic", topic).out


def test_describe_as_json(topics: Topics, topic: str) -> None:
    (described,) = json.loads(topics("--describe", "--topic", topic, "--json").out)
    assert described["configs"] == {"retention.ms": "86400000"}
    assert [part["partition"] for part in described["partitions"]] == [0, 1]
    assert described["partitions"][1]["isr"] == [1] == described["partitions"][1]["replicas"]
    assert described["replicationFactor"] == 1


def test_a_missing_topic_is_an_error_without_if_exists(topics: Topics, topic_name: str) -> None:
    message = f"Error while executing topic command : Topic '{topic_name}' does not exist as expected\n"
    for action in (["--describe"], ["--delete"], ["--alter", "--partitions", "3"]):
        assert topics(*action, "--topic", topic_name) == Ran(1, message, "")
        assert topics(*action, "--topic", topic_name, "--if-exists") == Ran(0, "", "")


def test_with_json_the_error_is_not_on_standard_output(topics: Topics, topic_name: str) -> None:
    refused = topics("--describe", "--json", "--topic", topic_name)
    assert (refused.code, refused.out) == (1, "")
    assert "does not exist as expected" in refused.err


def test_a_topic_is_found_by_its_id(topics: Topics, topic: str) -> None:
    described = topics("--describe", "--topic", topic)
    match = re.search(r"TopicId: (\S+)", described.out)
    assert match is not None
    assert topics("--describe", "--topic-id", match[1]) == described
    # The zero id means no id.
    assert topics("--describe", "--topic-id", "A" * 22, "--topic", topic) == described


def test_an_unknown_id(topics: Topics) -> None:
    missing = "BAAAAAAAAAAAAAAAAAAAAA"
    message = f"Error while executing topic command : TopicId '{missing}' does not exist as expected\n"
    assert topics("--describe", "--topic-id", missing) == Ran(1, message, "")
    assert topics("--describe", "--topic-id", missing, "--if-exists") == Ran(0, "", "")
    assert "22 characters" in topics("--describe", "--topic-id", "short").out


def test_large_topics_are_described_in_pages(topics: Topics, topic_name: str) -> None:
    topics("--create", "--topic", topic_name, "--partitions", "7")
    whole = topics("--describe", "--topic", topic_name)
    assert len(whole.lines) == 8
    assert topics("--describe", "--topic", topic_name, "--partition-size-limit-per-response", "2") == whole


def test_reports(topics: Topics, topic: str) -> None:
    for report in ("under-replicated", "under-min-isr", "unavailable"):
        assert topics("--describe", "--topic", topic, f"--{report}-partitions") == Ran(0, "", "")
    at_minimum = topics("--describe", "--topic", topic, "--at-min-isr-partitions")
    assert [line.split("\t")[2] for line in at_minimum.lines] == ["Partition: 0", "Partition: 1"]


def test_topics_with_overrides(topics: Topics, topic: str, admin: barnabas.Admin) -> None:
    admin.create_topics([NewTopic(f"{topic}-plain")])
    shown = topics("--describe", "--topic", f"{topic}.*", "--topics-with-overrides")
    assert len(shown.lines) == 1 and shown.lines[0].startswith(f"Topic: {topic}\t")


def test_partitions_are_added_and_never_removed(topics: Topics, topic: str) -> None:
    assert topics("--alter", "--topic", topic, "--partitions", "4") == Ran(0, "", "")
    assert "PartitionCount: 4" in topics("--describe", "--topic", topic).out
    fewer = topics("--alter", "--topic", topic, "--partitions", "3")
    assert fewer.code == 1 and "the new number must be larger, not 3" in fewer.out


def test_one_topic_that_cannot_be_altered_does_not_stop_the_others(
    topics: Topics, topic: str, admin: barnabas.Admin
) -> None:
    admin.create_topics([NewTopic(f"{topic}-big", 9, 1)])
    altered = topics("--alter", "--topic", f"{topic}.*", "--partitions", "5")
    assert altered.code == 1
    assert f"{topic}-big: " in altered.out and f" {topic}: " not in altered.out
    assert "PartitionCount: 5" in topics("--describe", "--topic", topic).out


def test_topics_are_deleted_by_pattern(topics: Topics, topic: str, admin: barnabas.Admin) -> None:
    admin.create_topics([NewTopic(f"{topic}-a"), NewTopic(f"{topic}-b")])
    assert topics("--delete", "--topic", f"{topic}-.*") == Ran(0, "", "")
    assert topics("--list", "--topic", f"{topic}.*").lines == [topic]


def test_a_wrong_pattern_is_an_error(topics: Topics) -> None:
    assert "* is an invalid regex" in topics("--describe", "--topic", "*").out


def test_settings_of_a_file_are_used(topics: Topics, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("request.timeout.ms=5000\nsasl.jaas.config=of another client\n")
    assert topics("--list", "--topic", topic, "--command-config", str(file)).lines == [topic]
    missing = topics("--list", "--command-config", str(tmp_path / "none"))
    assert missing.code == 1 and missing.err.count("\n") == 1


def test_no_broker_at_the_address_is_an_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.cli.connecting.PATIENCE_SECONDS", 0.05)
    ran = run("topics", "--bootstrap-server", "127.0.0.1:1", "--list")
    assert ran.code == 1
    assert ran.err.startswith(
        "Error: No broker answers at 127.0.0.1:1: connection refused by 127.0.0.1:1. Start"
    )
    assert "barnabas start" in ran.err and "--bootstrap-server" in ran.err


def test_kafkas_script_in_its_own_process(run_process: Run, bootstrap: str, topic_name: str) -> None:
    script = Path(__file__).parents[2] / "bin" / "kafka-topics.sh"
    where = ("--bootstrap-server", bootstrap, "--topic", topic_name)
    made = run_process("--create", *where, program=script)
    assert made == Ran(0, f"Created topic {topic_name}.\n", "")
    assert run_process("--create", *where, program=script).code == 1
