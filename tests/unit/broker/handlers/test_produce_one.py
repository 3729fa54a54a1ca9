"""The short way of a Produce beside the ordinary one: the same answers, the same bytes in the log."""

from typing import Any

import pytest
from tests.unit.broker.conftest import Stage

from barnabas.broker.handlers.produce_one import produce_one
from barnabas.broker.traffic import Traffic
from barnabas.records.builder import build_batch
from barnabas.wire.codec import RequestHeader, decode_response, encode_request
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

VERSIONS = range(3, 14)


def request_of(stage: Stage, topic: str, batch: bytes, acks: int = -1, index: int = 0) -> ProduceRequest:
    found = stage.image.topics.get(topic)
    data = TopicProduceData(
        name=topic,
        topic_id=found.id if found else bytes(16),
        partition_data=[PartitionProduceData(index=index, records=batch)],
    )
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[data])


def short_way(stage: Stage, request: ProduceRequest, version: int) -> Any:
    """What the short way answers, as a client reads it; None where it leaves the request to the other."""
    header = RequestHeader(0, version, 7, "tests")
    frame = b"".join(bytes(chunk) for chunk in encode_request(header, request))  # type: ignore[arg-type]
    reply = produce_one(stage, memoryview(bytearray(frame))[4:])  # type: ignore[arg-type]
    return None if reply is None else decode_response(0, version, reply[4:])[1]


@pytest.fixture
def counted(stage: Stage) -> Stage:
    stage.traffic = Traffic()  # type: ignore[attr-defined]
    return stage


def a_batch(stage: Stage, count: int = 3, **fields: int) -> bytes:
    now_ms = stage.clock.now_ms()
    return bytes(build_batch([(now_ms + n, b"key", b"value %d" % n, []) for n in range(count)], **fields))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
def test_appends_and_answers_as_the_ordinary_way_does(counted: Stage, version: int, acks: int):
    stage = counted
    stage.create("short")
    stage.create("ordinary")
    for _ in range(3):
        batch = a_batch(stage)
        given = short_way(stage, request_of(stage, "short", batch, acks), version)
        asked = stage.ask(request_of(stage, "ordinary", batch, acks), version)
        assert given.responses[0].partition_responses == asked.responses[0].partition_responses
    short, ordinary = (stage.replicas.leader(name, 0) for name in ("short", "ordinary"))
    assert short.high_watermark == ordinary.high_watermark == 9
    written = [partition.log.active.path(".log").read_bytes() for partition in (short, ordinary)]
    assert written[0] == written[1]
    assert vars_of(stage.traffic) == {"short": (short.log.size, 9), "ordinary": (short.log.size, 9)}  # type: ignore[attr-defined]


def vars_of(traffic: Traffic) -> dict[str, tuple[int, int]]:
    return {name: (found.bytes_in, found.records_in) for name, found in traffic.topics.items()}


def test_a_repeat_is_answered_with_its_first_offset(counted: Stage):
    counted.create("topic")
    batch = a_batch(counted, producer_id=5, producer_epoch=0, base_sequence=0)
    answers = [short_way(counted, request_of(counted, "topic", batch), 9) for _ in range(2)]
    assert [answer.responses[0].partition_responses[0].base_offset for answer in answers] == [0, 0]
    assert counted.replicas.leader("topic", 0).log.log_end_offset == 3


def special_requests(stage: Stage) -> dict[str, ProduceRequest]:
    """Requests that the short way has nothing to do with, by what is special about them."""
    now_ms = stage.clock.now_ms()
    sequenced = {"producer_id": 5, "producer_epoch": 0}
    stage.append("topic", **sequenced, base_sequence=0)
    damaged = bytearray(a_batch(stage))
    damaged[-1] ^= 1
    transactional = build_batch(
        [(now_ms, b"key", b"", [])], producer_id=6, producer_epoch=0, base_sequence=0, transactional=True
    )
    batches = {
        "sequence out of order": a_batch(stage, **sequenced, base_sequence=7),
        "transaction": transactional,
        "wrong CRC": damaged,
        "from the future": build_batch([(now_ms + 10_000_000, b"key", b"", [])]),
        "no key": build_batch([(now_ms, None, b"", [])]),
        "too large": a_batch(stage, count=200),
        "empty": b"",
    }
    good = a_batch(stage)
    return {
        "unknown topic": request_of(stage, "nothing", good),
        "unknown partition": request_of(stage, "topic", good, index=1),
        "internal topic": request_of(stage, "__consumer_offsets", good),
        "no acks": request_of(stage, "topic", good, acks=0),
        "acks of 2": request_of(stage, "topic", good, acks=2),
        **{what: request_of(stage, "topic", bytes(batch)) for what, batch in batches.items()},
    }


def test_whatever_is_refused_or_special_is_left_alone(counted: Stage):
    counted.create("topic", cleanup_policy="compact", max_message_bytes="2000")
    counted.create("__consumer_offsets")
    requests = special_requests(counted)
    ends = [each.log.log_end_offset for each in counted.replicas.all()]
    answered = [what for what, request in requests.items() if short_way(counted, request, 9) is not None]
    assert answered == []
    assert [each.log.log_end_offset for each in counted.replicas.all()] == ends
    assert short_way(counted, request_of(counted, "topic", a_batch(counted)), 9) is not None


@pytest.mark.parametrize(
    ("key", "value"), [("message.timestamp.type", "LogAppendTime"), ("compression.type", "lz4")]
)
def test_batches_that_the_topic_changes_go_the_ordinary_way(counted: Stage, key: str, value: str):
    counted.create("topic", **{key: value})
    assert short_way(counted, request_of(counted, "topic", a_batch(counted)), 9) is None


def test_more_replicas_in_sync_are_waited_for_by_the_ordinary_way(counted: Stage):
    counted.create("topic")
    partition = counted.replicas.leader("topic", 0)
    partition.isr = (1, 2)
    request = request_of(counted, "topic", a_batch(counted))
    assert short_way(counted, request, 9) is None
    partition.isr = (1,)
    assert short_way(counted, request, 9) is not None


def test_too_few_in_sync_are_refused_by_the_ordinary_way(counted: Stage):
    counted.create("topic", min_insync_replicas="2")
    assert short_way(counted, request_of(counted, "topic", a_batch(counted)), 9) is None
