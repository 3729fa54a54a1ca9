"""console-producer and console-consumer compared with Kafka's: each reads what the other one writes."""

import json
import subprocess
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.clients.broker_process import PROGRAM
from tests.java.jvm import run_java

import barnabas
from barnabas.client.admin import NewTopic, OffsetSpec
from barnabas.client.types import TopicPartition
from barnabas.coordination.hashing import partition_for

pytestmark = pytest.mark.java

PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
LINES = "trace:17,empty:\tkey1\tvalue 1\nNULL\tkey2\tNULL\none:NULL\tNULL\tgrün und weiß\na:b:c\tkey4\t\n"
READING = ("parse.key=true", "parse.headers=true", "null.marker=NULL")
SHOWING = (
    *("print.key=true", "print.headers=true", "print.partition=true", "print.offset=true"),
    *("print.timestamp=true", "null.literal=<none>", "key.separator=|", "headers.separator=;"),
)


def given(option: str, pairs: tuple[str, ...]) -> list[str]:
    return [word for pair in pairs for word in (option, pair)]


def ours(command: str, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [PROGRAM, command, *arguments], input=stdin, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def theirs(main_class: str, *arguments: str, stdin: str | None = None) -> str:
    done = run_java(main_class, *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "produce",
    [
        lambda where, lines: ours("console-producer", *where, *given("--property", READING), stdin=lines),
        lambda where, lines: theirs(PRODUCER, *where, *given("--reader-property", READING), stdin=lines),
    ],
    ids=["ours", "theirs"],
)
def test_what_one_writes_both_read(
    bootstrap: str, topic_name: str, produce: Callable[[list[str], str], str]
) -> None:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic_name, 1, 1)])
    where = ["--bootstrap-server", bootstrap, "--topic", topic_name]
    assert produce(where, LINES) == ""
    reading = [*where, "--from-beginning", "--max-messages", "4"]
    shown = ours("console-consumer", *reading, *given("--property", SHOWING))
    assert shown == theirs(CONSUMER, *reading, *given("--formatter-property", SHOWING))
    assert [line.split("|", 3)[3] for line in shown.splitlines()] == [
        "trace:17;empty:|key1|value 1",
        "NO_HEADERS|key2|<none>",
        "one:<none>|<none>|grün und weiß",
        "a:b:c|key4|",
    ]


def documents(output: str) -> list[Any]:
    """The JSON documents of an output, with or without whitespace between them."""
    decoder, parsed = json.JSONDecoder(), []
    text = output.strip()
    while text:
        document, end = decoder.raw_decode(text)
        parsed.append(document)
        text = text[end:].lstrip()
    return parsed


@pytest.fixture
def busy(bootstrap: str, topic: str) -> str:
    """The name of a group that had a member and has offsets, and of a transaction that is complete."""
    name = f"busy-{uuid.uuid4().hex[:8]}"
    settings = {"bootstrap.servers": bootstrap, "group.id": name, "auto.offset.reset": "earliest"}
    with barnabas.Consumer(settings) as reader:
        reader.subscribe([topic])
        while not reader.poll(1.0):
            continue
        reader.commit_sync()
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        admin.alter_consumer_group_offsets(name, {TopicPartition(topic, 2): 0})
        admin.delete_consumer_group_offsets(name, [TopicPartition(topic, 0)])
    with barnabas.Producer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"value", partition=0)
        producer.commit_transaction()
    return name


@pytest.mark.parametrize(
    "internal_topic, formatter, key",
    [
        ("__consumer_offsets", "OffsetsMessageFormatter", "group"),
        ("__consumer_offsets", "GroupMetadataMessageFormatter", "group"),
        ("__transaction_state", "TransactionLogMessageFormatter", "transactionalId"),
    ],
)
def test_internal_topics(bootstrap: str, busy: str, internal_topic: str, formatter: str, key: str) -> None:
    with barnabas.Admin(bootstrap_servers=bootstrap) as admin:
        count = len(admin.describe_topics([internal_topic])[internal_topic].partitions)
        partition = TopicPartition(internal_topic, partition_for(busy, count))
        end = admin.list_offsets({partition: OffsetSpec.LATEST})[partition].offset
    words = ["--bootstrap-server", bootstrap, "--topic", internal_topic, "--from-beginning"]
    words += ["--partition", str(partition.partition), "--max-messages", str(end)]
    words += ["--formatter", f"org.apache.kafka.tools.consumer.{formatter}"]

    def about_it(output: str) -> list[Any]:
        return [each for each in documents(output) if each["key"]["data"][key] == busy]

    shown = about_it(ours("console-consumer", *words))
    assert shown == about_it(theirs(CONSUMER, *words))
    assert shown
