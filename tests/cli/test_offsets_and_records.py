"""get-offsets, delete-records and log-dirs against a real broker."""

import json
from pathlib import Path

import confluent_kafka
import pytest
from tests.cli.conftest import Ran, Run

import barnabas
from barnabas.client.admin import NewTopic

RUN_CLASS = Path(__file__).parents[2] / "bin" / "kafka-run-class.sh"


@pytest.fixture
def server(bootstrap: str) -> tuple[str, str]:
    return "--bootstrap-server", bootstrap


@pytest.fixture
def filled(bootstrap: str, topic_name: str) -> str:
    """Partition 0 holds ten records of the seconds 1 to 10, partition 1 holds five, partition 2 none."""
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic_name, 3, 1, {"retention.ms": "-1"})])
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for partition, count in ((0, 10), (1, 5)):
        for number in range(1, count + 1):
            producer.produce(topic_name, b"value", partition=partition, timestamp=number * 1000)
    assert producer.flush(20) == 0
    return topic_name


@pytest.mark.parametrize(
    "time, expected",
    [
        (["--time", "-1"], ["0:10", "1:5", "2:0"]),
        ([], ["0:10", "1:5", "2:0"]),
        (["--time", "-2"], ["0:0", "1:0", "2:0"]),
        (["--time", "earliest"], ["0:0", "1:0", "2:0"]),
        (["--time", "max-timestamp"], ["0:9", "1:4"]),
        (["--time", "7000"], ["0:6"]),
        (["--time", "earliest-local"], ["0:0", "1:0", "2:0"]),
        (["--time", "latest-tiered"], []),
    ],
)
def test_offsets_of_a_topic(
    run: Run, server: tuple[str, str], filled: str, time: list[str], expected: list[str]
) -> None:
    ran = run("get-offsets", *server, "--topic", filled, *time)
    assert ran == Ran(0, "".join(f"{filled}:{row}\n" for row in expected), "")


def test_offsets_of_some_partitions(run: Run, server: tuple[str, str], filled: str) -> None:
    assert run("get-offsets", *server, "--topic", filled, "--partitions", "0,2").lines == [
        f"{filled}:0:10",
        f"{filled}:2:0",
    ]
    assert run("get-offsets", *server, "--topic-partitions", f"{filled}:1-").lines == [
        f"{filled}:1:5",
        f"{filled}:2:0",
    ]


def test_offsets_as_json(run: Run, server: tuple[str, str], filled: str) -> None:
    ran = run("get-offsets", *server, "--topic-partitions", f"{filled}:1", "--json")
    assert json.loads(ran.out) == [{"topic": filled, "partition": 1, "offset": 5}]


def test_a_filter_without_matches(run: Run, server: tuple[str, str]) -> None:
    ran = run("get-offsets", *server, "--topic", "no-such-topic")
    message = "Error: Could not match any topic-partitions with the specified filters.\n"
    assert ran == Ran(1, "", message)


def test_all_topics_without_a_filter(run: Run, server: tuple[str, str], filled: str) -> None:
    assert f"{filled}:0:10" in run("get-offsets", *server).lines
    assert f"{filled}:0:10" in run("get-offsets", *server, "--exclude-internal-topics").lines


def test_scripts_may_use_the_java_class(run_process: Run, bootstrap: str, filled: str) -> None:
    """Scripts count the records of a topic in this way."""
    where = ("kafka.tools.GetOffsetShell", "--broker-list", bootstrap, "--topic", filled)
    first = run_process(*where, "--time", "-2", program=RUN_CLASS)
    last = run_process(*where, "--time", "-1", program=RUN_CLASS)
    assert first.lines == [f"{filled}:{partition}:0" for partition in range(3)]
    assert last.lines == [f"{filled}:0:10", f"{filled}:1:5", f"{filled}:2:0"]
    other = run_process("kafka.tools.Nothing", program=RUN_CLASS)
    assert other.code == 1 and "There is no command for kafka.tools.Nothing" in other.err


def test_records_are_deleted_up_to_an_offset(
    run: Run, server: tuple[str, str], filled: str, tmp_path: Path
) -> None:
    request = tmp_path / "before.json"
    entries = [
        {"topic": filled, "partition": 0, "offset": 4},
        {"topic": filled, "partition": 1, "offset": -1},
    ]
    request.write_text(json.dumps({"partitions": entries, "version": 1}))
    ran = run("delete-records", *server, "--offset-json-file", str(request))
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines == [
        "Executing records delete operation",
        "Records delete operation completed:",
        f"partition: {filled}-0\tlow_watermark: 4",
        f"partition: {filled}-1\tlow_watermark: 5",
    ]
    assert run("get-offsets", *server, "--topic", filled, "--time", "-2").lines == [
        f"{filled}:0:4",
        f"{filled}:1:5",
        f"{filled}:2:0",
    ]


def test_the_error_of_one_partition_does_not_affect_the_others(
    run: Run, server: tuple[str, str], filled: str, tmp_path: Path
) -> None:
    request = tmp_path / "before.json"
    entries = [
        {"topic": filled, "partition": 0, "offset": 99},
        {"topic": filled, "partition": 1, "offset": 2},
    ]
    request.write_text(json.dumps({"partitions": entries}))
    ran = run("delete-records", *server, "--offset-json-file", str(request))
    assert ran.code == 1
    assert ran.lines[2].startswith(f"partition: {filled}-0\terror: ")
    assert ran.lines[3] == f"partition: {filled}-1\tlow_watermark: 2"
    failed, deleted = json.loads(
        run("delete-records", *server, "--offset-json-file", str(request), "--json").out
    )
    assert "no such offset" in failed["error"]
    assert deleted == {"topic": filled, "partition": 1, "lowWatermark": 2}


def test_the_error_for_a_missing_file_is_one_sentence(
    run: Run, server: tuple[str, str], tmp_path: Path
) -> None:
    missing = str(tmp_path / "none.json")
    ran = run("delete-records", *server, "--offset-json-file", missing)
    assert ran == Ran(1, "", f"Error: {missing}: No such file or directory.\n")


def test_directories(run: Run, server: tuple[str, str], filled: str) -> None:
    ran = run("log-dirs", *server, "--describe", "--topic-list", f"{filled},other", "--broker-list", "1")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1",
    ]
    document = json.loads(ran.lines[2])
    assert document["version"] == 1
    (broker,) = document["brokers"]
    (directory,) = broker["logDirs"]
    assert directory["error"] is None and directory["logDir"].startswith("/")
    sizes = {entry["partition"]: entry["size"] for entry in directory["partitions"]}
    assert list(sizes) == [f"{filled}-{number}" for number in range(3)]
    assert sizes[f"{filled}-0"] > sizes[f"{filled}-1"] > sizes[f"{filled}-2"] == 0
    alone = run("log-dirs", *server, "--describe", "--topic-list", filled, "--json")
    assert json.loads(alone.out) == document


def test_log_directories_of_brokers_that_do_not_exist(run: Run, server: tuple[str, str]) -> None:
    ran = run("log-dirs", *server, "--describe", "--broker-list", "1,7,8")
    assert ran.code == 1
    assert "do not exist from --broker-list: 7,8. Current existent brokers: 1" in ran.err
    assert "must be numbers" in run("log-dirs", *server, "--describe", "--broker-list", "one").err
    assert "describe" in run("log-dirs", *server).err
