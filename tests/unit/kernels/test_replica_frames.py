"""The kernel of a follower's fetches: equal to the codec that reads and writes by plan, compiled or not."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import Shaped, interpreted

from barnabas.kernels import replica_frames as compiled
from barnabas.kernels.plain_frames import FETCHED_TAIL, write_fetched
from barnabas.wire.codec import (
    RequestHeader,
    WireError,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from barnabas.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
)

plain = interpreted(compiled)
FETCH_KEY = 1
VERSIONS = st.integers(compiled.PLAIN_VERSION_MIN, compiled.PLAIN_VERSION_MAX)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
IDS = st.binary(min_size=16, max_size=16)
NAMES = st.text(max_size=20)


def test_the_kernel_under_test_is_the_compiled_one():
    assert str(compiled.__file__).endswith(".so")
    assert str(plain.__file__).endswith(".py")


# ---- requests

HEAD_FIELDS = (
    "version",
    "correlation_id",
    "client_id",
    "replica_id",
    "broker_epoch",
    "wait_ms",
    "bytes_min",
    "bytes_max",
    "session_id",
    "session_epoch",
)
PARTITION_FIELDS = (
    "partition",
    "leader_epoch",
    "fetch_offset",
    "last_epoch",
    "log_start_offset",
    "partition_bytes_max",
)


def request_read_by(kernel: Any, frame: bytes) -> list[Any] | None:
    """The fields of a plain fetch; None for any other frame."""
    read = kernel.ReplicaFetchFrame()
    if not read.read(frame):
        return None
    names = HEAD_FIELDS + (PARTITION_FIELDS if read.topic_id is not None else ())
    return [read.topic_id, *(getattr(read, name) for name in names)]


def joined(chunks: list[Any]) -> bytes:
    return b"".join(bytes(chunk) for chunk in chunks)


def frame_of(version: int, client_id: str | None, request: FetchRequest) -> bytes:
    return joined(encode_request(RequestHeader(FETCH_KEY, version, 77, client_id), request))[4:]


PARTITIONS = st.builds(
    FetchPartition,
    partition=INT32,
    current_leader_epoch=INT32,
    fetch_offset=INT64,
    last_fetched_epoch=INT32,
    log_start_offset=INT64,
    partition_max_bytes=INT32,
)


@st.composite
def requests(draw: st.DrawFn) -> FetchRequest:
    # A broker always has an id: with the default values the codec would leave out the tagged field.
    state = ReplicaState(replica_id=draw(st.integers(0, (1 << 31) - 1)), replica_epoch=draw(INT64))
    request = FetchRequest(
        replica_state=state,
        max_wait_ms=draw(INT32),
        min_bytes=draw(INT32),
        max_bytes=draw(INT32),
        session_id=draw(INT32),
        session_epoch=draw(INT32),
    )
    if draw(st.booleans()):
        request.topics = [FetchTopic(topic_id=draw(IDS), partitions=[draw(PARTITIONS)])]
    return request


@given(VERSIONS, NAMES, requests())
def test_reads_and_writes_requests_as_the_codec_does(version: int, client_id: str, request: FetchRequest):
    frame = frame_of(version, client_id, request)
    state = request.replica_state
    topic_id, part = None, FetchPartition()
    if request.topics:
        topic_id, part = request.topics[0].topic_id, request.topics[0].partitions[0]
    head = (
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.session_id,
        request.session_epoch,
    )
    place = (
        part.partition,
        part.current_leader_epoch,
        part.fetch_offset,
        part.last_fetched_epoch,
        part.log_start_offset,
        part.partition_max_bytes,
    )
    start = (version, 77, client_id.encode(), state.replica_id, state.replica_epoch, *head)
    read = request_read_by(compiled, frame)
    assert read == request_read_by(plain, Shaped(frame))
    assert read == [topic_id, *start, *(place if topic_id is not None else ())]
    for kernel in (compiled, plain):
        assert bytes(kernel.write_replica_fetch(*start, topic_id, *place))[4:] == frame


def plain_request() -> FetchRequest:
    return FetchRequest(
        replica_state=ReplicaState(replica_id=2, replica_epoch=9),
        session_id=5,
        session_epoch=6,
        topics=[
            FetchTopic(topic_id=bytes(range(16)), partitions=[FetchPartition(partition=3, fetch_offset=8)])
        ],
    )


def _name_twice(request: FetchRequest) -> None:
    request.topics.append(request.topics[0])


def _name_two_partitions(request: FetchRequest) -> None:
    request.topics[0].partitions.append(request.topics[0].partitions[0])


def _forget(request: FetchRequest) -> None:
    request.forgotten_topics_data = [ForgottenTopic(topic_id=bytes(16), partitions=[1])]


OTHER_REQUESTS: dict[str, Callable[[FetchRequest], object]] = {
    "two topics": _name_twice,
    "two partitions": _name_two_partitions,
    "no partition": lambda request: request.topics[0].partitions.clear(),
    "a forgotten topic": _forget,
    "a rack": lambda request: setattr(request, "rack_id", "here"),
    "a client": lambda request: setattr(request, "replica_state", ReplicaState()),
    "a cluster id": lambda request: setattr(request, "cluster_id", "mine"),
}


@pytest.mark.parametrize("what", OTHER_REQUESTS)
def test_leaves_other_requests_to_the_codec(what: str):
    request = plain_request()
    OTHER_REQUESTS[what](request)
    frame = frame_of(17, "broker-2", request)
    assert request_read_by(compiled, frame) is None
    assert request_read_by(plain, Shaped(frame)) is None


def test_leaves_other_apis_versions_and_clients_without_a_name_to_the_codec():
    frame = bytearray(frame_of(17, "broker-2", plain_request()))
    assert request_read_by(compiled, bytes(frame)) is not None
    for key, version in ((0, 17), (257, 17), (1, 14), (1, 19), (1, -1)):
        frame[0:4] = key.to_bytes(2) + version.to_bytes(2, signed=True)
        assert request_read_by(compiled, bytes(frame)) is None
    assert request_read_by(compiled, frame_of(17, None, plain_request())) is None


EDITS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4)


def edited(frame: bytes, edits: list[tuple[int, int]], cut: int) -> bytes:
    changed = bytearray(frame)
    for position, value in edits:
        changed[position % len(changed)] = value
    return bytes(changed[: len(changed) - cut if cut < len(changed) else 0])


@given(st.booleans(), EDITS, st.integers(0, 120))
@example(True, [(8, 0x7F), (9, 0xFF)], 0)
def test_hostile_requests_are_read_alike_or_left_to_the_codec(
    has_partition: bool, edits: list[tuple[int, int]], cut: int
):
    request = plain_request()
    if not has_partition:
        request.topics = []
    hostile = edited(frame_of(17, "broker-2", request), edits, cut)
    if not hostile:
        return
    read = request_read_by(compiled, hostile)
    assert read == request_read_by(plain, Shaped(hostile))
    if read is None:
        return
    try:
        decoded = decode_request(hostile).message
    except WireError as error:
        # The codec reads the client's name as text, too; the short way compares its bytes with a known name.
        assert "UTF-8" in str(error)
        return
    assert [topic.topic_id for topic in decoded.topics] == ([] if read[0] is None else [read[0]])
    assert decoded.replica_state.replica_id == read[1 + HEAD_FIELDS.index("replica_id")]


# ---- answers

ANSWER_FIELDS = ("partition", "high_watermark", "log_start_offset", "start", "size")


def answer_read_by(kernel: Any, frame: bytes) -> list[Any] | None:
    read = kernel.FetchedFrame()
    if not read.read(frame):
        return None
    names = ANSWER_FIELDS if read.topic_id is not None else ()
    return [read.correlation_id, read.session_id, read.topic_id, *(getattr(read, name) for name in names)]


@given(VERSIONS, st.tuples(INT32, INT32), st.tuples(IDS, INT32), st.tuples(INT64, INT64, INT64), st.binary())
def test_reads_what_the_writer_writes(
    version: int,
    numbers: tuple[int, int],
    place: tuple[bytes, int],
    offsets: tuple[int, int, int],
    records: bytes,
):
    (correlation, session), (topic, index) = numbers, place
    head = write_fetched(version, correlation, session, topic, index, *offsets, len(records))
    frame = bytes(head[4:]) + records + FETCHED_TAIL
    read = answer_read_by(compiled, frame)
    assert read == answer_read_by(plain, Shaped(frame))
    assert read is not None
    assert read[:-2] == [correlation, session, topic, index, offsets[0], offsets[2]]
    assert frame[read[-2] : read[-2] + read[-1]] == records


@given(VERSIONS, INT32, INT32)
def test_reads_an_answer_with_nothing(version: int, correlation: int, session: int):
    frame = joined(encode_response(FETCH_KEY, version, correlation, FetchResponse(session_id=session)))[4:]
    assert answer_read_by(compiled, frame) == [correlation, session, None]
    assert answer_read_by(plain, Shaped(frame)) == [correlation, session, None]


def plain_answer() -> FetchResponse:
    part = PartitionData(partition_index=3, high_watermark=7, aborted_transactions=None, records=b"records")
    topic = FetchableTopicResponse(topic_id=bytes(range(16)), partitions=[part])
    return FetchResponse(session_id=5, responses=[topic])


def _part(answer: FetchResponse) -> PartitionData:
    return answer.responses[0].partitions[0]


OTHER_ANSWERS: dict[str, Callable[[FetchResponse], object]] = {
    "an error": lambda answer: setattr(answer, "error_code", 70),
    "a throttle time": lambda answer: setattr(answer, "throttle_time_ms", 1),
    "two topics": lambda answer: answer.responses.append(answer.responses[0]),
    "two partitions": lambda answer: answer.responses[0].partitions.append(_part(answer)),
    "no partition": lambda answer: answer.responses[0].partitions.clear(),
    "an error of the partition": lambda answer: setattr(_part(answer), "error_code", 6),
    "a diverging epoch": lambda answer: setattr(
        _part(answer), "diverging_epoch", EpochEndOffset(epoch=1, end_offset=2)
    ),
    "an aborted transaction": lambda answer: setattr(
        _part(answer), "aborted_transactions", [AbortedTransaction(producer_id=1, first_offset=2)]
    ),
    "another replica": lambda answer: setattr(_part(answer), "preferred_read_replica", 2),
    "no records": lambda answer: setattr(_part(answer), "records", None),
    "an endpoint": lambda answer: setattr(
        answer, "node_endpoints", [NodeEndpoint(node_id=1, host="here", port=9)]
    ),
}


@pytest.mark.parametrize("what", OTHER_ANSWERS)
def test_leaves_other_answers_to_the_codec(what: str):
    answer = plain_answer()
    OTHER_ANSWERS[what](answer)
    frame = joined(encode_response(FETCH_KEY, 17, 7, answer))[4:]
    assert answer_read_by(compiled, frame) is None
    assert answer_read_by(plain, Shaped(frame)) is None


@given(EDITS, st.integers(0, 100))
def test_hostile_answers_are_read_alike_or_left_to_the_codec(edits: list[tuple[int, int]], cut: int):
    hostile = edited(joined(encode_response(FETCH_KEY, 17, 7, plain_answer()))[4:], edits, cut)
    if not hostile:
        return
    read = answer_read_by(compiled, hostile)
    assert read == answer_read_by(plain, Shaped(hostile))
    if read is None:
        return
    correlation_id, decoded = decode_response(FETCH_KEY, 17, hostile)
    assert [correlation_id, decoded.session_id] == read[:2]
    topics = [topic.topic_id for topic in decoded.responses]
    assert topics == ([] if read[2] is None else [read[2]])
    if read[2] is not None:
        part = decoded.responses[0].partitions[0]
        assert [part.partition_index, part.high_watermark, part.log_start_offset] == read[3:6]
        assert bytes(part.records) == hostile[read[6] : read[6] + read[7]]
