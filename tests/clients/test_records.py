"""Every client reads what every other client has written, with every compression."""

import time

import pytest
from tests.clients.client import CODECS, Client, Message, Reading, Sending, contents, numbered
from tests.clients.confluent_client import ConfluentClient
from tests.clients.conftest import MakeTopic

HEADERS = (
    ("plain", b"value"),
    ("twice", b"first"),
    ("twice", b"second"),
    ("empty", b""),
    ("ключ-鍵", "значение 🗝".encode()),
)


def test_records_come_back_in_order(client: Client, topic: str) -> None:
    sent = numbered(500)
    offsets = client.produce(topic, sent)
    assert offsets == list(range(500))
    received = client.read(topic, 500)
    assert contents(received) == contents(sent)
    assert [message.offset for message in received] == offsets


@pytest.mark.parametrize("codec", CODECS)
def test_each_codec_carries_the_content(client: Client, topic: str, codec: str) -> None:
    if codec not in client.codecs:
        pytest.skip(f"{client.name} has no package for {codec} installed")
    sent = numbered(200, prefix="much the same text again and again " * 4)
    client.produce(topic, sent, Sending(compression=codec, linger_ms=50))
    assert contents(client.read(topic, 200)) == contents(sent)


@pytest.mark.parametrize("codec", CODECS)
def test_another_client_reads_each_codec(client: Client, topic: str, codec: str, bootstrap: str) -> None:
    if codec not in client.codecs:
        pytest.skip(f"{client.name} has no package for {codec} installed")
    sent = numbered(100, prefix="crossing " * 20)
    ConfluentClient(bootstrap).produce(topic, sent, Sending(compression=codec, linger_ms=50))
    assert contents(client.read(topic, 100)) == contents(sent)


@pytest.mark.parametrize("stored", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_topic_decides_the_codec(bootstrap: str, make_topic: MakeTopic, stored: str) -> None:
    client = ConfluentClient(bootstrap)
    topic = make_topic(configs={"compression.type": stored})
    sent = numbered(50, prefix="recompress me " * 10)
    client.produce(topic, sent, Sending(compression="gzip", linger_ms=50))
    assert contents(client.read(topic, 50)) == contents(sent)


def test_headers_are_kept_as_they_are(client: Client, topic: str) -> None:
    sent = [Message(b"with", b"k", HEADERS), Message(b"without", b"k")]
    client.produce(topic, sent)
    assert contents(client.read(topic, 2)) == contents(sent)


def test_null_header_stays_null(client: Client, topic: str, bootstrap: str) -> None:
    # Sent by librdkafka for all: kafka-python refuses to send one, but must read it.
    sent = [Message(b"v", None, (("null", None), ("empty", b""), ("null", None)))]
    ConfluentClient(bootstrap).produce(topic, sent)
    assert contents(client.read(topic, 1)) == contents(sent)


def test_null_and_empty_differ(client: Client, topic: str) -> None:
    sent = [Message(None, b"tombstone"), Message(b"", b""), Message(b"no key", None), Message(b"x", b"")]
    client.produce(topic, sent)
    assert contents(client.read(topic, 4)) == contents(sent)


def test_text_of_every_script(client: Client, topic: str) -> None:
    texts = ["naïve café", "Ελληνικά", "мир", "日本語", "עברית", "👩‍🚀 a‍b", "\x00\x01 control"]
    sent = [Message(text.encode(), text.encode()) for text in texts]
    client.produce(topic, sent)
    received = client.read(topic, len(texts))
    assert [(message.value or b"").decode() for message in received] == texts


def test_create_time_is_the_producers(client: Client, topic: str) -> None:
    base_ms = int(time.time() * 1000) - 60_000
    times = [base_ms + step for step in (0, 7, 3, 1000)]
    client.produce(topic, [Message(b"v", timestamp_ms=at) for at in times])
    received = client.read(topic, 4)
    assert [message.timestamp_ms for message in received] == times
    assert not any(message.log_append_time for message in received)


def test_log_append_time_is_the_brokers(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"message.timestamp.type": "LogAppendTime"})
    before_ms = int(time.time() * 1000)
    client.produce(topic, [Message(b"v", timestamp_ms=1_000_000), Message(b"w", timestamp_ms=2_000_000)])
    received = client.read(topic, 2)
    assert all(message.log_append_time for message in received)
    assert all((message.timestamp_ms or 0) >= before_ms - 1000 for message in received)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_each_level_of_acks_delivers(client: Client, topic: str, acks: str) -> None:
    sent = numbered(50)
    offsets = client.produce(topic, sent, Sending(acks=acks))
    assert offsets == ([None] * 50 if acks == "0" else list(range(50)))
    assert contents(client.read(topic, 50)) == contents(sent)


def test_partitions_keep_their_own_order(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=24)
    sent = [Message(f"{number}".encode(), partition=number % 24) for number in range(24 * 10)]
    client.produce(topic, sent)
    for partition in (0, 11, 23):
        received = client.read(topic, 10, partition=partition)
        assert [message.value for message in received] == [
            b"%d" % (partition + 24 * turn) for turn in range(10)
        ]


def test_value_of_megabytes_with_a_higher_limit(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"max.message.bytes": "6000000"})
    big = bytes(range(256)) * 16_000
    client.produce(topic, [Message(big), Message(b"next")])
    received = client.read(topic, 2, reading=Reading(bytes_max=65_536))
    assert [message.value for message in received] == [big, b"next"]
