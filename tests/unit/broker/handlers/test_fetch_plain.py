"""The short way and the ordinary way of Fetch give the same answers, in all versions and in sessions."""

from typing import Any

import pytest
from tests.unit.broker.conftest import Stage

from barnabas.broker.call import Call, Encoded
from barnabas.broker.fetch_answers import FetchAnswers
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.handlers import fetch as handler
from barnabas.broker.session import Session
from barnabas.wire.codec import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

VERSIONS = range(4, 19)


@pytest.fixture
def filled(stage: Stage) -> Stage:
    stage.fetch_sessions = FetchSessions(stage.clock, 10, 120.0)  # type: ignore[attr-defined]
    stage.create("topic", partitions=2)
    for _ in range(5):
        stage.append("topic", 3)
    return stage


def request_of(stage: Stage, offset: int, bytes_max: int = 100_000, **fields: Any) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max, **fields)
    topic = FetchTopic(topic="topic", topic_id=stage.image.topics["topic"].id, partitions=[part])
    return FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_id=0, session_epoch=-1, topics=[topic]
    )


def ask(stage: Stage, request: FetchRequest, version: int) -> tuple[bool, Any]:
    """Whether the answer went the short way, and the answer as a client reads it."""
    header = RequestHeader(1, version, 7, "tests")
    frame = b"".join(bytes(chunk) for chunk in encode_request(header, request))  # type: ignore[arg-type]
    call = Call(stage, None, Session(stage.config.listeners[0], ""), header)  # type: ignore[arg-type]
    answer = handler.fetch(call, decode_request(frame[4:]).message)
    is_short = isinstance(answer, Encoded)
    chunks = answer.chunks if isinstance(answer, Encoded) else encode_response(1, version, 7, answer)
    data = b"".join(bytes(_bytes_of(chunk)) for chunk in chunks)
    return is_short, decode_response(1, version, data[4:])[1]


def _bytes_of(chunk: Any) -> Any:
    if isinstance(chunk, bytes | bytearray | memoryview):
        return chunk
    with open(chunk.file.fileno(), "rb", closefd=False) as file:
        file.seek(chunk.position)
        return file.read(chunk.size)


def comparable(response: Any) -> Any:
    """The response with its records as bytes, so that two responses can be compared."""
    for topic in response.responses:
        for part in topic.partitions:
            part.records = bytes(part.records)
    return response


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("offset", [0, 4, 14])
def test_both_ways_give_the_same_answer(
    filled: Stage, monkeypatch: pytest.MonkeyPatch, version: int, offset: int
):
    counts = filled.replicas.leader("topic", 0).requests
    for bytes_max in (0, 200, 100_000):
        counts.bytes_out = counts.fetches = 0
        went_short, short = ask(filled, request_of(filled, offset, bytes_max), version)
        assert counts.fetches == 1
        bytes_out = counts.bytes_out
        with monkeypatch.context() as patched:
            patched.setattr(FetchAnswers, "_is_plain", lambda *_: False)
            went_short_too, ordinary = ask(filled, request_of(filled, offset, bytes_max), version)
        assert (went_short, went_short_too) == (True, False)
        assert comparable(short) == comparable(ordinary)
        assert len(short.responses[0].partitions[0].records) == bytes_out > 0
        assert (counts.fetches, counts.bytes_out) == (2, 2 * bytes_out)


def test_a_session_gets_only_what_is_new(filled: Stage):
    first = request_of(filled, 0)
    first.session_epoch = 0
    went_short, opened = ask(filled, first, 12)
    assert went_short
    assert opened.session_id > 0
    again = request_of(filled, 15)
    again.session_id, again.session_epoch = opened.session_id, 1
    went_short, silent = ask(filled, again, 12)
    assert (went_short, silent.responses) == (False, [])
    filled.append("topic")
    again.session_epoch, again.topics = 2, []
    went_short, news = ask(filled, again, 12)
    assert went_short
    assert news.session_id == opened.session_id
    assert news.responses[0].partitions[0].high_watermark == 16


@pytest.mark.parametrize(
    ("offset", "fields"),
    [
        (15, {}),  # nothing there yet
        (16, {}),  # out of range
        (-1, {}),
        (0, {"current_leader_epoch": 9}),
        (0, {"last_fetched_epoch": 9}),
    ],
)
def test_errors_and_empty_answers_go_the_ordinary_way(filled: Stage, offset: int, fields: dict[str, int]):
    request = request_of(filled, offset)
    for name, value in fields.items():
        setattr(request.topics[0].partitions[0], name, value)
    assert ask(filled, request, 12)[0] is False


def test_read_committed_goes_the_ordinary_way(filled: Stage):
    request = request_of(filled, 0)
    request.isolation_level = 1
    went_short, answer = ask(filled, request, 12)
    assert went_short is False
    assert answer.responses[0].partitions[0].aborted_transactions == []


def test_two_partitions_go_the_ordinary_way(filled: Stage):
    request = request_of(filled, 0)
    second = FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1000)
    request.topics[0].partitions.append(second)
    went_short, answer = ask(filled, request, 12)
    assert went_short is False
    assert len(answer.responses[0].partitions) == 2
