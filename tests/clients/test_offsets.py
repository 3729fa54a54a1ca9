"""The first and last offsets of a log, and offsets by timestamp."""

import time

import pytest
from tests.clients.client import BrokerError, Client, Message, Reading, Sending, contents, numbered
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient

OFFSET_OUT_OF_RANGE = 1


def test_empty_log_begins_and_ends_at_zero(client: Client, topic: str) -> None:
    assert client.offset_range(topic) == (0, 0)


def test_end_follows_the_last_record(client: Client, topic: str) -> None:
    client.produce(topic, numbered(7))
    assert client.offset_range(topic) == (0, 7)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_time_finds_the_record_inside_a_batch(client: Client, topic: str, codec: str) -> None:
    base_ms = int(time.time() * 1000) - 100_000
    sent = [Message(b"%d" % number, timestamp_ms=base_ms + number * 10) for number in range(50)]
    client.produce(topic, sent, Sending(compression=codec, linger_ms=100))
    assert client.offset_for_time(topic, base_ms - 5_000) == 0
    assert client.offset_for_time(topic, base_ms + 170) == 17
    assert client.offset_for_time(topic, base_ms + 171) == 18
    assert client.offset_for_time(topic, base_ms + 490) == 49
    assert client.offset_for_time(topic, base_ms + 491) is None


def test_time_finds_the_first_of_unordered_times(client: Client, topic: str) -> None:
    base_ms = int(time.time() * 1000) - 100_000
    client.produce(topic, [Message(b"v", timestamp_ms=base_ms + step) for step in (0, 500, 100, 700, 600)])
    assert client.offset_for_time(topic, base_ms + 50) == 1
    assert client.offset_for_time(topic, base_ms + 501) == 3


def test_reading_starts_in_the_middle_of_a_batch(client: Client, topic: str) -> None:
    sent = numbered(100)
    client.produce(topic, sent, Sending(compression="gzip", linger_ms=200))
    received = client.read(topic, 40, offset=60)
    assert received[0].offset == 60
    assert contents(received) == contents(sent[60:])


@pytest.mark.parametrize("offset", [-5, 1000])
def test_offset_out_of_range_without_reset_is_an_error(client: Client, topic: str, offset: int) -> None:
    if offset < 0:
        offset = _log_that_begins_at_ten(client, topic) - 5
    else:
        client.produce(topic, numbered(20))
    with pytest.raises(BrokerError) as refused:
        client.read(topic, 1, offset=offset)
    assert refused.value.code == OFFSET_OUT_OF_RANGE


def _log_that_begins_at_ten(client: Client, topic: str) -> int:
    client.produce(topic, numbered(20))
    ConfluentAdmin(client.bootstrap).delete_records(topic, 10)
    return 10


def test_offset_before_the_beginning_resets_to_earliest(client: Client, topic: str) -> None:
    beginning = _log_that_begins_at_ten(client, topic)
    received = client.read(topic, 10, offset=2, reading=Reading(reset="earliest"))
    assert [message.offset for message in received] == list(range(beginning, 20))


def test_offset_beyond_the_end_resets_to_earliest(client: Client, topic: str) -> None:
    client.produce(topic, numbered(5))
    received = client.read(topic, 5, offset=1_000_000, reading=Reading(reset="earliest"))
    assert [message.offset for message in received] == [0, 1, 2, 3, 4]


def test_deleted_records_leave_the_range(client: Client, topic: str) -> None:
    beginning = _log_that_begins_at_ten(client, topic)
    assert client.offset_range(topic) == (beginning, 20)


def test_seeking_back_and_forth(bootstrap: str, topic: str) -> None:
    client = ConfluentClient(bootstrap)
    client.produce(topic, numbered(300))
    for offset in (299, 0, 150, 149, 298):
        assert client.read(topic, 1, offset=offset)[0].offset == offset
