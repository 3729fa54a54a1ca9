"""Options and files of the smaller tools."""

import json
from pathlib import Path

import pytest
from tests.unit.cli.parsing import parsed

from barnabas.cli.broker_api_versions import lines
from barnabas.cli.delete_records import read_offsets
from barnabas.cli.failures import ToolError
from barnabas.cli.get_offsets import choice_of, spec_of
from barnabas.cli.log_dirs import as_json
from barnabas.cli.main import parser_of
from barnabas.cli.run_class import CLASSES, command_of
from barnabas.client.admin import LogDirDescription, OffsetSpec, ReplicaInfo
from barnabas.client.types import TopicPartition
from barnabas.errors import ErrorCode, KafkaError

BIN = Path(__file__).parents[3] / "bin"


@pytest.mark.parametrize(
    "arguments, chosen, others",
    [
        ("--topic orders", ["orders:0", "orders:9"], ["payments:0"]),
        ("--topic orders|payments --partitions 0,2", ["orders:0", "payments:2"], ["orders:1"]),
        ("--topic-partitions orders:1,payments:0-2", ["orders:1", "payments:1"], ["orders:0", "payments:2"]),
        ("--topic-partitions orders:5-", ["orders:5", "orders:99"], ["orders:4"]),
        ("--topic-partitions orders:-3", ["orders:0", "orders:2"], ["orders:3"]),
        ("--topic-partitions :1", ["orders:1", "payments:1"], ["orders:0"]),
        ("--topic-partitions o.*", ["orders:7"], ["payments:7"]),
        ("--topic-partitions orders:", ["orders:7"], ["payments:7"]),
        ("", ["orders:0", "payments:1"], []),
    ],
)
def test_partitions_are_chosen(arguments: str, chosen: list[str], others: list[str]) -> None:
    choice = choice_of(parsed("get-offsets", *arguments.split()))

    def is_chosen(text: str) -> bool:
        topic, _, number = text.partition(":")
        return choice(topic, int(number))

    assert all(map(is_chosen, chosen))
    assert not any(map(is_chosen, others))
    assert choice("orders", -1)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("--topic-partitions a:x", "Invalid rule specification: a:x"),
        ("--topic-partitions a:1-2-3", "Invalid rule specification"),
        ("--topic-partitions a --topic b", "cannot be used with --topic"),
        ("--topic-partitions a --partitions 1", "cannot be used with --topic or --partitions"),
        ("--partitions 1,x", "numeric partition ids, but received: 1,x"),
    ],
)
def test_invalid_choices_of_partitions(arguments: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        choice_of(parsed("get-offsets", *arguments.split()))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("latest", OffsetSpec.LATEST),
        ("-1", OffsetSpec.LATEST),
        ("earliest", OffsetSpec.EARLIEST),
        ("max-timestamp", OffsetSpec.MAX_TIMESTAMP),
        ("earliest-local", OffsetSpec.EARLIEST_LOCAL),
        ("latest-tiered", OffsetSpec.LATEST_TIERED),
        ("earliest-pending-upload", OffsetSpec.EARLIEST_PENDING_UPLOAD),
        ("1735689600000", 1735689600000),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert spec_of(text) == expected


def test_an_invalid_time() -> None:
    with pytest.raises(ToolError, match="Malformed time argument soon"):
        spec_of("soon")


def test_a_negative_time_is_not_parsed_as_an_option() -> None:
    assert parsed("get-offsets", "--time", "-2").time == "-2"


def offsets_file(*entries: object, **fields: object) -> str:
    return json.dumps({"partitions": list(entries), "version": 1, **fields})


def entry(partition: object = 0, offset: object = 5, topic: object = "orders") -> dict[str, object]:
    return {"topic": topic, "partition": partition, "offset": offset}


def test_offsets_of_a_file() -> None:
    text = offsets_file(entry(), entry(1, -1))
    assert read_offsets(text) == {TopicPartition("orders", 0): 5, TopicPartition("orders", 1): -1}
    assert read_offsets('{"partitions": []}') == {}


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "not a valid JSON"),
        ("[]", "Missing partitions field"),
        ('{"partitions": 3}', "Missing partitions field"),
        (offsets_file(version=2), "Not supported version field value 2"),
        (offsets_file(entry(), entry(offset=6)), "duplicate topic partitions: orders-0"),
        (offsets_file(entry(offset="6")), "needs a topic, a partition and an offset"),
        (offsets_file(entry(partition=True)), "needs a topic"),
        (offsets_file("orders"), "needs a topic"),
    ],
)
def test_invalid_offset_files(text: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        read_offsets(text)


def test_directories_with_errors_and_only_some_topics() -> None:
    replicas = {
        TopicPartition("orders", 10): ReplicaInfo(7, 1, False),
        TopicPartition("orders", 2): ReplicaInfo(8, 0, True),
        TopicPartition("payments", 0): ReplicaInfo(9, 0, False),
    }
    broken = LogDirDescription(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), {})
    document = as_json({2: {"/a": LogDirDescription(None, replicas)}, 1: {"/b": broken}}, {"orders"})
    first, second = document["brokers"]
    assert (first["broker"], first["logDirs"][0]["error"]) == (1, "KAFKA_STORAGE_ERROR")
    assert second["logDirs"][0]["partitions"] == [
        {"partition": "orders-2", "size": 8, "offsetLag": 0, "isFuture": True},
        {"partition": "orders-10", "size": 7, "offsetLag": 1, "isFuture": False},
    ]


@pytest.mark.parametrize(
    "versions, line",
    [
        ({0: (3, 13)}, "Produce(0): 3 to 13 [usable: 13]"),
        ({0: (3, 99)}, "Produce(0): 3 to 99 [usable: 13]"),
        ({0: (90, 99)}, "Produce(0): 90 to 99 [unusable: node too new]"),
        ({47: (0, 0)}, "OffsetDelete(47): 0 [usable: 0]"),
        ({1: (0, 3)}, "Fetch(1): 0 to 3 [unusable: node too old]"),
        ({}, "Fetch(1): UNSUPPORTED"),
        ({999: (1, 2)}, "UNKNOWN(999): 1 to 2"),
        ({52: (0, 0)}, "Vote(52): 0 [usable: 0]"),
    ],
)
def test_versions_of_an_api(versions: dict[int, tuple[int, int]], line: str) -> None:
    assert line in map(str, lines(versions))


def test_apis_between_brokers_are_not_printed_as_unsupported() -> None:
    assert not any(line.name == "Vote" for line in lines({}))


@pytest.mark.parametrize(
    "name, command",
    [
        ("kafka.tools.GetOffsetShell", "get-offsets"),
        ("org.apache.kafka.tools.GetOffsetShell", "get-offsets"),
        ("kafka.tools.DumpLogSegments", "dump-log"),
        ("kafka.admin.TopicCommand", "topics"),
        ("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "consumer-groups"),
        ("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "reassign-partitions"),
        ("kafka.Kafka", "start"),
    ],
)
def test_the_command_of_a_class(name: str, command: str) -> None:
    assert command_of(name) == command


@pytest.mark.parametrize(
    "name", ["GetOffsetShell", "kafka.tools.JmxTool", "com.example.kafka.GetOffsetShell"]
)
def test_classes_without_a_command(name: str) -> None:
    with pytest.raises(ToolError, match="There is no command for"):
        command_of(name)


def test_arguments_after_the_class_belong_to_the_tool() -> None:
    words = ["-name", "x", "-loggc", "kafka.tools.GetOffsetShell", "--time", "-1", "--help", "-name"]
    options = parser_of("run-class").parse_args(words)
    assert options.class_name == "kafka.tools.GetOffsetShell"
    assert options.arguments == ["--time", "-1", "--help", "-name"]


def test_every_script_of_kafka_has_its_class() -> None:
    called = {path.read_text().split()[-2] for path in BIN.glob("*.sh")}
    # These two are scripts in Kafka, too, without a class.
    assert set(CLASSES.values()) == called - {"run-class", "server-stop"}
