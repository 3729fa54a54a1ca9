"""The short way and the ordinary way of Produce: the same answers, the same bytes in the log."""

import dataclasses
import errno
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.conftest import MakeStage, Stage

from barnabas.broker.plain_produces import plain_produces
from barnabas.broker.session import Session
from barnabas.metadata.topics import TopicReference
from barnabas.records.builder import build_batch
from barnabas.wire.codec import RequestHeader, decode_response, encode_request
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

VERSIONS = range(3, 14)


def request_of(stage: Stage, topic: str, batch: bytes, acks: int = -1, index: int = 0) -> ProduceRequest:
    topic_image = stage.image.topics.get(topic)
    data = TopicProduceData(
        name=topic,
        topic_id=topic_image.id if topic_image else bytes(16),
        partition_data=[PartitionProduceData(index=index, records=batch)],
    )
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[data])


def frame_of(request: ProduceRequest, version: int, client_id: str | None = "tests") -> memoryview:
    header = RequestHeader(0, version, 7, client_id)
    chunks = encode_request(header, request)
    return memoryview(bytearray(b"".join(bytes(chunk) for chunk in chunks)))  # type: ignore[arg-type]


def answered(stage: Stage, arrived: memoryview) -> tuple[int, int, bytearray]:
    """The bytes and number of the frames that the short way answers, and the answers. All frames of a test
    come through one connection, which keeps its permits."""
    if not hasattr(stage, "connection"):
        stage.connection = plain_produces(stage, Session(stage.config.listeners[0], ""))  # type: ignore
    way = stage.connection  # type: ignore[attr-defined]
    replies = way.answer(arrived, stage.clock.now_ms())
    return way.bytes_answered, way.answered, replies


def short_way(stage: Stage, request: ProduceRequest, version: int) -> Any:
    """What the short way answers, as a client reads it; None if it leaves the request to the ordinary way."""
    frame = frame_of(request, version)
    taken, count, reply = answered(stage, frame)
    assert (taken, count) in ((0, 0), (len(frame), 1))
    return decode_response(0, version, reply[4:])[1] if count else None


def a_batch(stage: Stage, count: int = 3, **fields: int) -> bytes:
    now_ms = stage.clock.now_ms()
    return bytes(build_batch([(now_ms + n, b"key", b"value %d" % n, []) for n in range(count)], **fields))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
def test_appends_and_answers_as_the_ordinary_way_does(stage: Stage, version: int, acks: int):
    stage.create("short")
    stage.create("ordinary")
    for _ in range(3):
        batch = a_batch(stage)
        short_answer = short_way(stage, request_of(stage, "short", batch, acks), version)
        ordinary_answer = stage.ask(request_of(stage, "ordinary", batch, acks), version)
        ordinary_parts = ordinary_answer.responses[0].partition_responses
        assert short_answer.responses[0].partition_responses == ordinary_parts
    short, ordinary = (stage.replicas.leader(name, 0) for name in ("short", "ordinary"))
    assert short.high_watermark == ordinary.high_watermark == 9
    written = [partition.log.active.path(".log").read_bytes() for partition in (short, ordinary)]
    assert written[0] == written[1]
    for partition in (short, ordinary):
        assert (partition.bytes_in, partition.records_in) == (short.log.size, 9)


def test_an_idempotent_producer_takes_the_short_way_in_order_and_with_a_repeat(stage: Stage):
    stage.create("topic")
    producer = {"producer_id": 5, "producer_epoch": 0}
    requests = [
        request_of(stage, "topic", a_batch(stage, **producer, base_sequence=sequence))
        for sequence in (0, 3, 6)
    ]
    answers = [short_way(stage, request, 9) for request in requests]
    assert [answer.responses[0].partition_responses[0].base_offset for answer in answers] == [0, 3, 6]
    repeated = short_way(stage, requests[1], 9)
    assert repeated.responses == stage.ask(requests[1], 9).responses
    assert repeated.responses[0].partition_responses[0].base_offset == 3
    log = stage.replicas.leader("topic", 0).log
    assert log.log_end_offset == 9
    assert [batch.last_offset for batch in log.producers.entries[5].batches] == [2, 5, 8]


def special_requests(stage: Stage) -> dict[str, ProduceRequest]:
    """Requests that the short way must not answer, by what is special about them."""
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


def test_refused_and_special_requests_are_left_to_the_ordinary_way(stage: Stage):
    stage.create("topic", cleanup_policy="compact", max_message_bytes="2000")
    stage.create("__consumer_offsets")
    requests = special_requests(stage)
    ends = [each.log.log_end_offset for each in stage.replicas.all()]
    answered = [what for what, request in requests.items() if short_way(stage, request, 9) is not None]
    assert answered == []
    assert [each.log.log_end_offset for each in stage.replicas.all()] == ends
    assert short_way(stage, request_of(stage, "topic", a_batch(stage)), 9) is not None


@pytest.mark.parametrize(
    ("key", "value"), [("message.timestamp.type", "LogAppendTime"), ("compression.type", "lz4")]
)
def test_batches_that_the_topic_changes_go_the_ordinary_way(stage: Stage, key: str, value: str):
    stage.create("topic", **{key: value})
    assert short_way(stage, request_of(stage, "topic", a_batch(stage)), 9) is None


def test_answers_wait_for_more_replicas_in_sync(stage: Stage):
    stage.create("topic")
    partition = stage.replicas.leader("topic", 0)
    placed = stage.image.topics["topic"].partitions[0]
    partition.follow(dataclasses.replace(placed, isr=(1, 2)))
    for acks, waits in ((1, False), (-1, True)):
        frame = frame_of(request_of(stage, "topic", a_batch(stage), acks), 9)
        assert answered(stage, frame)[:2] == (len(frame), 1)
        deferred = stage.connection.deferred  # type: ignore[attr-defined]
        assert [each.partition is partition for each in deferred] == [True] * waits
    partition.follow(placed)
    assert short_way(stage, request_of(stage, "topic", a_batch(stage)), 9) is not None


def test_the_ordinary_way_refuses_too_few_replicas_in_sync(stage: Stage):
    stage.create("topic", min_insync_replicas="2")
    placed = stage.image.topics["topic"].partitions[0]
    stage.replicas.leader("topic", 0).follow(dataclasses.replace(placed, replicas=(1, 2), partition_epoch=9))
    assert short_way(stage, request_of(stage, "topic", a_batch(stage)), 9) is None


def _withdrawn_by(stage: Stage) -> dict[str, Callable[[], object]]:
    """Everything after which a permit to write is no longer valid."""
    partition = stage.replicas.leader("topic", 0)
    placed = stage.image.topics["topic"].partitions[0]
    return {
        "leader": lambda: partition.follow(dataclasses.replace(placed, leader=2, leader_epoch=9)),
        "epoch": lambda: partition.follow(dataclasses.replace(placed, leader_epoch=9)),
        "isr": lambda: partition.follow(dataclasses.replace(placed, isr=(1, 2))),
        "config": lambda: partition.update_config(dataclasses.replace(partition.log.config, segment_ms=9)),
        "offline": partition.log.go_offline,
        "deleted": lambda: stage.run(stage.controller.delete_topics([TopicReference("topic")])),
    }


@pytest.mark.parametrize("change", ["leader", "epoch", "isr", "config", "offline", "deleted"])
def test_a_permit_is_withdrawn_by_any_change_and_keeps_no_partition_alive(stage: Stage, change: str):
    stage.create("topic")
    assert short_way(stage, request_of(stage, "topic", a_batch(stage)), 9) is not None
    (permit,) = stage.connection.permits.values()  # type: ignore[attr-defined]
    assert permit.partition is stage.replicas.leader("topic", 0)
    _withdrawn_by(stage)[change]()
    assert permit.partition is None
    ends = [each.log.log_end_offset for each in stage.replicas.all()]
    is_served = answered(stage, frame_of(request_of(stage, "topic", a_batch(stage)), 9))[1] == 1
    assert is_served == (change in ("epoch", "isr", "config"))
    assert is_served == ([each.log.log_end_offset for each in stage.replicas.all()] != ends)


def test_permits_are_for_one_client_id_and_version(stage: Stage):
    """A topic's name may have the bytes of another topic's id, and rights depend on the client."""
    stage.create("topic")
    request = request_of(stage, "topic", a_batch(stage))
    for version, client_id in ((9, "a"), (9, "b"), (13, "b"), (9, None)):
        frame = frame_of(request, version, client_id)
        assert answered(stage, frame)[1] == 1
        assert len(stage.connection.permits) == 1  # type: ignore[attr-defined]


def test_an_internal_topic_is_for_the_admin_client(stage: Stage):
    stage.create("__consumer_offsets")
    request = request_of(stage, "__consumer_offsets", a_batch(stage))
    taken = [answered(stage, frame_of(request, 9, name))[1] for name in ("x", "__admin_client", "x")]
    assert taken == [0, 1, 0]


def test_a_connection_keeps_a_bounded_number_of_permits(stage: Stage):
    stage.create("topic", partitions=1100)
    for index in range(1100):
        assert short_way(stage, request_of(stage, "topic", a_batch(stage), index=index), 9) is not None
    assert 0 < len(stage.connection.permits) <= 1000  # type: ignore[attr-defined]


def test_the_metadata_is_read_again_when_it_changes(stage: Stage):
    stage.create("topic")
    assert short_way(stage, request_of(stage, "topic", a_batch(stage)), 9) is not None
    stage.run(stage.controller.delete_topics([TopicReference("topic")]))
    assert short_way(stage, request_of(stage, "topic", a_batch(stage)), 9) is None
    stage.create("topic", max_message_bytes="50")
    assert short_way(stage, request_of(stage, "topic", a_batch(stage)), 9) is None


def test_a_batch_that_has_to_be_flushed_goes_the_ordinary_way(stage: Stage):
    stage.create("topic", flush_messages="7")
    request = request_of(stage, "topic", a_batch(stage))
    assert [short_way(stage, request, 9) is not None for _ in range(3)] == [True, True, False]
    stage.ask(request, 9)
    assert stage.replicas.leader("topic", 0).log.unflushed == 0
    assert short_way(stage, request, 9) is not None


def test_a_full_disk_is_reported_by_the_ordinary_way_from_the_same_frame(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    stage.create("topic")
    request = request_of(stage, "topic", a_batch(stage))
    assert short_way(stage, request, 9) is not None
    segment = stage.replicas.leader("topic", 0).log.active

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    frame = frame_of(request, 9)
    before = bytes(frame)
    monkeypatch.setattr(segment, "_pwrite", full)
    assert answered(stage, frame)[1] == 0
    changed = [place for place, byte in enumerate(before) if frame[place] != byte]
    # Only the leader epoch, which the broker sets.
    assert all(12 <= place - (len(before) - 3 - len(a_batch(stage))) < 16 for place in changed)
    monkeypatch.undo()
    assert answered(stage, frame)[1] == 1
    assert stage.replicas.leader("topic", 0).log.log_end_offset == 6


def test_an_append_with_an_unexpected_error_is_not_repeated(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    """An unexpected error may have changed something: the batch must not be appended again."""
    stage.create("topic")
    log = stage.replicas.leader("topic", 0).log
    frame = frame_of(request_of(stage, "topic", a_batch(stage)), 9)

    def broken(*_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(log.active, "_pwrite", broken)
    with pytest.raises(ZeroDivisionError):
        answered(stage, frame)
    assert log.log_end_offset == 0


def test_a_failed_write_leaves_the_answers_before_it(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    stage.create("topic")
    segment = stage.replicas.leader("topic", 0).log.active
    write, written = segment._pwrite, []

    def full_after_two(*arguments: Any) -> int:
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "full")
        written.append(arguments)
        return write(*arguments)

    monkeypatch.setattr(segment, "_pwrite", full_after_two)
    frame = bytes(frame_of(request_of(stage, "topic", a_batch(stage)), 9))
    taken, count, replies = answered(stage, memoryview(bytearray(frame * 3)))
    assert (taken, count) == (2 * len(frame), 2)
    assert len(replies) == 2 * (4 + int.from_bytes(replies[:4]))


def test_several_frames_are_answered_together_up_to_the_first_that_is_special(stage: Stage):
    stage.create("topic", partitions=2)
    good = [frame_of(request_of(stage, "topic", a_batch(stage), index=index), 9) for index in (0, 1, 0)]
    special = frame_of(request_of(stage, "topic", a_batch(stage), acks=0), 9)
    arrived = bytearray(b"".join([*good, special, *good]))
    before = bytes(arrived)
    taken, count, replies = answered(stage, memoryview(arrived))
    assert (taken, count) == (sum(map(len, good)), 3)
    assert arrived[taken:] == before[taken:]
    places = []
    while replies:
        size = 4 + int.from_bytes(replies[:4])
        answer = decode_response(0, 9, bytes(replies[4:size]))[1].responses[0].partition_responses[0]
        places.append((answer.index, answer.base_offset))
        del replies[:size]
    assert places == [(0, 0), (1, 0), (0, 3)]


@pytest.mark.parametrize("missing", [1, 30, 100])
def test_an_incomplete_frame_waits(stage: Stage, missing: int):
    stage.create("topic")
    frame = frame_of(request_of(stage, "topic", a_batch(stage)), 9)
    assert answered(stage, frame[:-missing])[:2] == (0, 0)


def test_a_frame_beyond_the_limit_is_left_to_be_refused(make_stage: MakeStage):
    stage = make_stage(socket_request_max_bytes="200")
    stage.create("topic")
    small, large = (request_of(stage, "topic", a_batch(stage, count=count)) for count in (1, 9))
    assert short_way(stage, small, 9) is not None
    assert short_way(stage, large, 9) is None


def test_one_call_answers_a_bounded_number_of_frames(stage: Stage):
    stage.create("topic")
    frame = bytes(frame_of(request_of(stage, "topic", a_batch(stage)), 9))
    taken, count, _ = answered(stage, memoryview(bytearray(frame * 100)))
    assert (taken, count) == (64 * len(frame), 64)
