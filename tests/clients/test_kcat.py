"""kcat, with an older librdkafka."""

import json
import shutil
import subprocess

import pytest
from tests.clients.client import Message, Sending, numbered
from tests.clients.confluent_client import ConfluentClient
from tests.clients.kafka_python_client import KafkaPythonAdmin

pytestmark = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")


def kcat(bootstrap: str, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        ["kcat", "-b", bootstrap, *arguments], input=stdin, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_are_written_and_read(bootstrap: str, topic: str, codec: str) -> None:
    lines = "".join(f"key{number}\tline {number} " + "again " * 20 + "\n" for number in range(300))
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-K", "\t", "-z", codec, stdin=lines)
    assert kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-K", "\t", "-e", "-q") == lines


def test_this_librdkafka_does_compress(
    bootstrap: str, topic: str, kafka_python_admin: KafkaPythonAdmin
) -> None:
    """Some versions silently send plain text unless the advertised Produce versions begin at 0."""
    text = "the same again and again " * 2000
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-z", "gzip", stdin=text + "\n")
    answer = kafka_python_admin.library.describe_log_dirs([topic])[0]
    sizes = [
        part["partition_size"] for d in answer["log_dirs"] for t in d["topics"] for part in t["partitions"]
    ]
    assert 0 < sum(sizes) < len(text) / 10


def test_idempotent_producer(bootstrap: str, topic: str) -> None:
    lines = "".join(f"{number}\n" for number in range(100))
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-X", "enable.idempotence=true", stdin=lines)
    assert kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-e", "-q") == lines


def test_json_envelope_shows_headers_and_offsets(bootstrap: str, topic: str) -> None:
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-H", "a=1", "-H", "b=zwei", "-K", ":", stdin="k:v\n")
    envelope = json.loads(kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-J", "-e", "-q"))
    assert (envelope["key"], envelope["payload"], envelope["offset"]) == ("k", "v", 0)
    assert envelope["headers"] == ["a", "1", "b", "zwei"]
    assert envelope["tstype"] == "create"


def test_metadata_list(bootstrap: str, topic: str) -> None:
    listing = json.loads(kcat(bootstrap, "-L", "-t", topic, "-J"))
    assert [broker["name"] for broker in listing["brokers"]] == [bootstrap]
    (listed,) = listing["topics"]
    assert listed["topic"] == topic
    assert len(listed["partitions"]) == 1


@pytest.mark.parametrize(("start", "first"), [("beginning", 0), ("7", 7), ("-3", 7)])
def test_reading_from_an_offset(bootstrap: str, topic: str, start: str, first: int) -> None:
    ConfluentClient(bootstrap).produce(topic, numbered(10))
    output = kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-o", start, "-e", "-q", "-f", "%o\n")
    assert [int(line) for line in output.split()] == list(range(first, 10))


def test_query_of_an_offset_by_time(bootstrap: str, topic: str) -> None:
    base_ms = 1_700_000_000_000
    sent = [Message(b"v", timestamp_ms=base_ms + number) for number in range(10)]
    ConfluentClient(bootstrap).produce(topic, sent, Sending(linger_ms=50))
    assert "offset 4" in kcat(bootstrap, "-Q", "-t", f"{topic}:0:{base_ms + 4}")
