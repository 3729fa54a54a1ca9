"""console-producer and console-consumer: bytes in, bytes out."""

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Ran, Run
from tests.clients.broker_process import PROGRAM

import barnabas
from barnabas.client.admin import NewTopic, OffsetSpec
from barnabas.client.types import TopicPartition
from barnabas.coordination.hashing import partition_for


@pytest.fixture
def topic(bootstrap: str, topic_name: str) -> str:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic_name, partitions=1)])
    return topic_name


Tool = Callable[..., Ran]


@pytest.fixture
def produce(run: Run, bootstrap: str, topic: str) -> Tool:
    def produce(*arguments: str, stdin: str | bytes) -> Ran:
        where = ("--bootstrap-server", bootstrap, "--topic", topic)
        return run("console-producer", *where, *arguments, stdin=stdin)

    return produce


@pytest.fixture
def consume(run: Run, bootstrap: str, topic: str) -> Tool:
    """Reads all records, or the first `count`, without a group."""

    def consume(*arguments: str, count: int | None = None) -> Ran:
        count_max = end_of(bootstrap, TopicPartition(topic, 0)) if count is None else count
        where = ("--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0", "--from-beginning")
        return run("console-consumer", *where, "--max-messages", str(count_max), *arguments)

    return consume


def end_of(bootstrap: str, partition: TopicPartition) -> int:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        return admin.list_offsets({partition: OffsetSpec.LATEST})[partition].offset


def properties(**given: str) -> list[str]:
    return [
        word for name, value in given.items() for word in ("--property", f"{name.replace('_', '.')}={value}")
    ]


def test_lines_are_written_and_read(produce: Tool, consume: Tool) -> None:
    sent = produce(stdin="one\ntwo\n\nthree")
    assert (sent.code, sent.out, sent.err) == (0, "", "")
    read = consume()
    assert (read.code, read.out) == (0, "one\ntwo\n\nthree\n")
    assert read.err == "Processed a total of 4 messages\n"


def test_binary_values_are_not_changed(produce: Tool, consume: Tool) -> None:
    every_byte = bytes(range(256)).replace(b"\n", b"")
    produce("--sync", "--compression-codec", stdin=every_byte + b"\n" + every_byte[::-1])
    assert consume().out.encode("utf-8", "surrogateescape") == every_byte + b"\n" + every_byte[::-1] + b"\n"


def test_keys_headers_and_nulls(produce: Tool, consume: Tool) -> None:
    given = properties(parse_key="true", parse_headers="true", key_separator="|", null_marker="NULL")
    assert produce(*given, stdin="a:1,b:NULL\tkey|value\nNULL\tNULL|NULL\n").code == 0
    options = properties(print_key="true", print_headers="true", print_offset="true", print_partition="true")
    assert consume(*options).lines == [
        "Partition:0\tOffset:0\ta:1,b:null\tkey\tvalue",
        "Partition:0\tOffset:1\tNO_HEADERS\tnull\tnull",
    ]


def test_json(produce: Tool, consume: Tool, topic: str) -> None:
    produce("--request-required-acks", "-1", "--timeout", "0", stdin=b"text\n\xff\n")
    first, second = map(json.loads, consume("--json").lines)
    assert (first["topic"], first["partition"], first["offset"], first["value"]) == (topic, 0, 0, "text")
    assert first["key"] is None and first["headers"] == [] and first["timestampType"] == "CreateTime"
    assert second["value"] == {"base64": "/w=="}


def test_a_line_without_a_key_stops_the_producer_after_the_earlier_lines(
    produce: Tool, consume: Tool
) -> None:
    sent = produce(*properties(parse_key="true"), stdin="k\tv\noops\nk\tnever\n")
    assert sent.code == 1
    assert sent.err.startswith("Error: No key separator found on line number 2: 'oops'.")
    assert consume().out == "v\n"


def test_a_record_that_is_too_large_is_reported_and_the_others_are_sent(produce: Tool, consume: Tool) -> None:
    sent = produce("--producer-property", "max.request.size=1000", stdin="one\n" + "x" * 2000 + "\ntwo\n")
    assert sent.code == 1
    assert "with key: null, value: 2000 bytes with error: " in sent.err and sent.err.count("\n") == 1
    assert consume().out == "one\ntwo\n"


def test_a_record_that_the_broker_refuses_is_reported_and_the_others_are_sent(
    produce: Tool, consume: Tool, bootstrap: str, topic_name: str
) -> None:
    from barnabas.client.admin import AlterConfigOp, ConfigResource, ConfigResourceType

    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic_name)
        admin.incremental_alter_configs({resource: [AlterConfigOp("max.message.bytes", "1000")]})
    sent = produce("--sync", stdin="one\n" + "x" * 2000 + "\ntwo\n")
    assert sent.code == 1
    assert "value: 2000 bytes with error: " in sent.err
    assert consume().out == "one\ntwo\n"


def test_from_an_offset(produce: Tool, run: Run, bootstrap: str, topic: str) -> None:
    produce(stdin="".join(f"{number}\n" for number in range(10)))
    where = ("console-consumer", "--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0")
    assert run(*where, "--offset", "7", "--max-messages", "2").out == "7\n8\n"
    assert run(*where, "--offset", "earliest", "--max-messages", "1").out == "0\n"
    latest = run(*where, "--offset", "latest", "--timeout-ms", "200")
    assert (latest.code, latest.out) == (0, "")
    assert run(*where, "--max-messages", "0").err == "Processed a total of 0 messages\n"


def test_a_group_continues_where_it_stopped(produce: Tool, run: Run, bootstrap: str, topic: str) -> None:
    produce(stdin="".join(f"{number}\n" for number in range(10)))
    where = ("console-consumer", "--bootstrap-server", bootstrap, "--topic", topic, "--group", topic)
    first = run(*where, "--from-beginning", "--max-messages", "4")
    assert (first.code, first.out) == (0, "0\n1\n2\n3\n")
    # Records that were fetched but not printed are read again.
    assert run(*where, "--max-messages", "6").out == "4\n5\n6\n7\n8\n9\n"
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        assert admin.list_consumer_group_offsets(topic)[TopicPartition(topic, 0)].offset == 10


def test_a_pattern_reads_many_topics(run: Run, bootstrap: str, topic_name: str) -> None:
    for number in range(3):
        name = f"{topic_name}.{number}"
        sent = run("console-producer", "--broker-list", bootstrap, "--topic", name, stdin=f"{number}\n")
        assert sent.code == 0
    where = ("console-consumer", "--bootstrap-server", bootstrap, "--from-beginning", "--max-messages", "2")
    read = run(*where, "--whitelist", f"{topic_name}.[02]")
    assert sorted(read.lines) == ["0", "2"]
    assert run(*where, "--include", "[").err.startswith("Error: --include '[' is not a regular expression")


def test_records_that_cannot_be_printed(produce: Tool, consume: Tool) -> None:
    produce(stdin=b"12345678\nshort\n\x00\x00\x00\x00\x00\x00\x00\x07\n")
    stopped = consume("--value-deserializer", "LongDeserializer")
    assert stopped.code == 1 and len(stopped.lines) == 1
    assert "at offset 1 cannot be printed: " in stopped.err
    assert "Processed a total of 2 messages\n" in stopped.err
    skipping = consume("--value-deserializer", "LongDeserializer", "--skip-message-on-error")
    assert (skipping.code, skipping.lines[1]) == (0, "7")
    assert "Processed a total of 3 messages\n" in skipping.err


def test_committed_only(run: Run, consume: Tool, bootstrap: str, topic: str) -> None:
    with barnabas.Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"aborted")
        producer.flush()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"committed")
        producer.commit_transaction()
    assert consume(count=2).out == "aborted\ncommitted\n"
    assert consume("--isolation-level", "read_committed", count=1).out == "committed\n"


@pytest.mark.parametrize(
    "internal, formatter, key",
    [
        (
            "__consumer_offsets",
            "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
            {"group": "{name}", "topic": "{name}", "partition": 0},
        ),
        (
            "__transaction_state",
            "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter",
            {"transactionalId": "{name}"},
        ),
    ],
)
def test_internal_topics_are_decoded(
    run: Run, bootstrap: str, topic: str, internal: str, formatter: str, key: dict[str, object]
) -> None:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        admin.alter_consumer_group_offsets(topic, {TopicPartition(topic, 0): 42})
    with barnabas.Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        count = len(admin.describe_topics([internal])[internal].partitions)
    partition = TopicPartition(internal, partition_for(topic, count))
    where = ("--bootstrap-server", bootstrap, "--topic", internal, "--partition", str(partition.partition))
    most = ("--from-beginning", "--max-messages", str(end_of(bootstrap, partition)))
    read = run("console-consumer", *where, *most, "--formatter", formatter)
    expected = json.loads(json.dumps(key).replace("{name}", topic))
    assert expected in [json.loads(line)["key"]["data"] for line in read.lines]


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_after_a_signal_the_consumer_leaves_its_group(
    produce: Tool, bootstrap: str, topic: str, number: int, code: int
) -> None:
    produce(stdin="one\n")
    command = [PROGRAM, "console-consumer", "--bootstrap-server", bootstrap, "--topic", topic]
    command += ["--from-beginning", "--group", topic, "--enable-systest-events"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"one\n"
        os.kill(process.pid, number)
        assert process.stderr.read() == b"Processed a total of 1 messages\n"
        assert process.stdout.read() == b"shutdown_complete\n"
        assert process.wait(60) == code
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        # It has committed and left its group.
        assert admin.describe_consumer_groups([topic])[topic].members == ()
        assert admin.list_consumer_group_offsets(topic)[TopicPartition(topic, 0)].offset == 1


def test_an_interrupted_producer_has_sent_what_it_read(bootstrap: str, topic: str, consume: Tool) -> None:
    command = [PROGRAM, "console-producer", "--bootstrap-server", bootstrap, "--topic", topic]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while end_of(bootstrap, TopicPartition(topic, 0)) < 1:
            assert time.monotonic() < deadline
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b""
    assert consume().out == "one\n"


def test_a_closed_pipe_ends_the_consumer(produce: Tool, bootstrap: str, topic: str) -> None:
    produce(stdin="x" * 1000 + "\n")
    command = [PROGRAM, "console-consumer", "--bootstrap-server", bootstrap, "--topic", topic]
    command += ["--from-beginning", "--partition", "0"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(writing)
    assert done.returncode == 141
    assert done.stderr == (
        "Unable to write to standard out, closing consumer.\nProcessed a total of 1 messages\n"
    )


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((), "Exactly one of --include/--topic is required."),
        (("--topic", "a", "--include", "b"), "Exactly one of --include/--topic is required."),
        (("--include", "a", "--partition", "0"), "The topic is required when partition is specified."),
        (("--topic", "a", "--offset", "1"), "The partition is required when offset is specified."),
        (
            ("--topic", "a", "--partition", "0", "--offset", "1", "--from-beginning"),
            "Options from-beginning and offset cannot be specified together.",
        ),
        (
            ("--topic", "a", "--partition", "0", "--group", "g"),
            "Options group and partition cannot be specified together.",
        ),
        (
            ("--topic", "a", "--partition", "0", "--offset", "-3"),
            "offset value '-3' is incorrect.",
        ),
        (
            ("--topic", "a", "--from-beginning", "--consumer-property", "auto.offset.reset=latest"),
            "Can't simultaneously specify --from-beginning and 'auto.offset.reset=latest'",
        ),
        (
            ("--topic", "a", "--group", "g", "--consumer-property", "group.id=h"),
            "Detected group ids: 'g', 'h'",
        ),
        (("--topic", "a", "--consumer-property", "group.id"), "must be written as KEY=VALUE"),
        (("--topic", "a", "--json", "--formatter", "x"), "Options json and formatter cannot be"),
    ],
)
def test_options_that_exclude_each_other(run: Run, arguments: tuple[str, ...], sentence: str) -> None:
    ran = run("console-consumer", "--bootstrap-server", "localhost:1", *arguments)
    assert ran.code == 1 and ran.out == ""
    assert sentence in ran.err


def test_settings_from_files_and_unknown_settings(
    run: Run, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    reader, client = tmp_path / "reader.properties", tmp_path / "client.properties"
    reader.write_text("parse.key=true\nkey.separator=|\n")
    client.write_text("compression.type=lz4\nkey.serializer=org.example.Mine\nlinger.mss=1\n")
    where = ("--bootstrap-server", bootstrap, "--topic", topic)
    files = ("--reader-config", str(reader), "--producer.config", str(client))
    sent = run("console-producer", *where, *files, "--property", "key.separator= ", stdin="k v\n")
    assert sent.code == 0
    assert sent.err == (
        "Warning: linger.mss is not a setting of this client and is ignored. Did you mean linger.ms?\n"
    )
    shown, client = tmp_path / "shown.properties", tmp_path / "consumer.properties"
    shown.write_text("print.key=true\nkey.separator=\\t\\t\n")
    client.write_text("group.id=from-file\nauto.offset.reset=earliest\n")
    files = ("--formatter-config", str(shown), "--consumer.config", str(client))
    assert run("console-consumer", *where, *files, "--max-messages", "1").out == "k\t\tv\n"


def test_commands_of_common_scripts(run: Run, bootstrap: str, topic: str) -> None:
    sent = run(
        *("console-producer", "--broker-list", bootstrap, "--topic", topic, "--request-required-acks", "-1"),
        *("--producer-property", "compression.type=lz4"),
        stdin="goal\n",
    )
    assert (sent.code, sent.err) == (0, "")
    where = ("console-consumer", "--bootstrap-server", bootstrap, "--topic", topic, "--max-messages", "1")
    group = ("--group", topic, "--from-beginning", "--consumer-property", "enable.auto.commit=false")
    assert run(*where, *group).out == "goal\n"
    assert run(*where, "--from-beginning", "--new-consumer").out == "goal\n"


def test_a_topic_or_partition_that_does_not_exist(run: Run, bootstrap: str, topic: str) -> None:
    where = ("console-consumer", "--bootstrap-server", bootstrap, "--timeout-ms", "100", "--topic")
    missing = run(*where, topic, "--partition", "7")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err == f"Error: Topic '{topic}' has no partition 7: it has 1, numbered from 0.\n"
    waiting = run(*where, f"{topic}-later")
    assert waiting.code == 0
    assert waiting.err.startswith(f"Warning: There is no topic '{topic}-later' yet; waiting for it.\n")
    wrong = run(*where, "no/topic")
    assert wrong.code == 1 and wrong.err.startswith("Error: Topic 'no/topic' cannot be read: ")


def test_on_a_terminal_there_is_a_prompt(bootstrap: str, topic: str, consume: Tool) -> None:
    ours, theirs = pty.openpty()
    command = [PROGRAM, "console-producer", "--bootstrap-server", bootstrap, "--topic", topic]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        shown = b""
        for prompts, line in ((1, b"typed\n"), (2, b"\x04")):
            while shown.count(b">") < prompts:
                shown += os.read(ours, 100)
            os.write(ours, line)
        assert process.wait(60) == 0
    os.close(ours)
    assert consume().out == "typed\n"


def test_a_wrong_address_is_an_error(run: Run) -> None:
    ran = run("console-producer", "--bootstrap-server", "localhost:1", "--topic", "t")
    assert ran.code == 1 and "localhost:1" in ran.err and ran.err.count("\n") == 1
    for tool in ("console-producer", "console-consumer"):
        assert run(tool, "--bootstrap-server", "localhost", "--topic", "t").code == 1


def test_a_java_line_reader_is_refused(produce: Tool) -> None:
    assert produce("--line-reader", "org.apache.kafka.tools.LineMessageReader", stdin="x").code == 0
    refused = produce("--line-reader", "com.example.Mine", stdin="x")
    assert refused.code == 1 and "Java classes cannot be run here" in refused.err
