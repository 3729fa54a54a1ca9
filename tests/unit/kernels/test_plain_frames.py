"""The kernel of the commonest frames: equal to the codec that reads and writes by plan, compiled or not."""

import contextlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import Shaped, interpreted

from barnabas.kernels import plain_frames as compiled
from barnabas.kernels.batches import PlainRules
from barnabas.kernels.log_end import AppendResult, LogEnd, PartitionEnd, Permit
from barnabas.records.builder import build_batch
from barnabas.wire.codec import RequestHeader, WireError, decode_request, encode_request, encode_response
from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

plain = interpreted(compiled)
VERSIONS = st.integers(3, 13)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
NAMES = st.text("abcXYZ._-", min_size=1, max_size=249)
IDS = st.binary(min_size=16, max_size=16)


def test_the_kernel_under_test_is_the_compiled_one():
    assert str(compiled.__file__).endswith(".so")
    assert str(plain.__file__).endswith(".py")


FIELDS = ("version", "correlation_id", "client_id", "acks", "topic", "partition", "start", "size")


def read_by(kernel: Any, frame: bytes) -> dict[str, Any] | None:
    """The fields of a plain Produce; None for any other frame."""
    read = kernel.ProduceFrame()
    return {name: getattr(read, name) for name in FIELDS} if read.read(frame) else None


def frame_of(version: int, client_id: str | None, request: ProduceRequest) -> bytes:
    chunks = encode_request(RequestHeader(0, version, 77, client_id), request)
    return b"".join(bytes(chunk) for chunk in chunks)[4:]  # type: ignore[arg-type]


def one_batch(version: int, place: tuple[str, bytes, int], records: bytes) -> ProduceRequest:
    name, topic_id, index = place
    data = PartitionProduceData(index=index, records=records)
    topic = TopicProduceData(name=name, topic_id=topic_id, partition_data=[data])
    return ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1500, topic_data=[topic])


@given(
    VERSIONS,
    st.none() | st.text(max_size=20),
    st.tuples(NAMES, IDS, INT32),
    st.binary(min_size=61, max_size=300),
    st.integers(-1, 1),
)
def test_reads_what_the_codec_reads(
    version: int, client_id: str | None, place: tuple[str, bytes, int], records: bytes, acks: int
):
    request = one_batch(version, place, records)
    request.acks = acks
    frame = frame_of(version, client_id, request)
    read = read_by(compiled, frame)
    assert read == read_by(plain, Shaped(frame))
    assert read is not None
    assert read["client_id"] == (None if client_id is None else client_id.encode())
    assert (read["version"], read["correlation_id"], read["acks"]) == (version, 77, acks)
    assert read["partition"] == place[2]
    assert read["topic"] == (place[0].encode() if version < 13 else place[1])
    assert frame[read["start"] : read["start"] + read["size"]] == records


def other_requests() -> dict[str, ProduceRequest]:
    """Requests that are not plain, made by changing one that is."""
    frames = {}
    for what in ("transaction", "two topics", "two partitions", "no topic", "no partition", "no records"):
        request = one_batch(9, ("topic", bytes(16), 0), b"records")
        topics = request.topic_data
        match what:
            case "transaction":
                request.transactional_id = "mine"
            case "two topics":
                topics.append(topics[0])
            case "two partitions":
                topics[0].partition_data.append(topics[0].partition_data[0])
            case "no topic":
                topics.clear()
            case "no partition":
                topics[0].partition_data.clear()
            case "no records":
                topics[0].partition_data[0].records = None
        frames[what] = request
    return frames


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("what", list(other_requests()))
def test_leaves_other_requests_to_the_codec(version: int, what: str):
    frame = frame_of(version, "client", other_requests()[what])
    assert read_by(compiled, frame) is None
    assert read_by(plain, Shaped(frame)) is None


def test_leaves_other_apis_and_versions_to_the_codec():
    frame = bytearray(frame_of(9, "client", one_batch(9, ("topic", bytes(16), 0), b"records")))
    assert read_by(compiled, bytes(frame)) is not None
    for key, version in ((1, 9), (256, 9), (0, 2), (0, 14), (0, -1)):
        frame[0:4] = key.to_bytes(2) + version.to_bytes(2, signed=True)
        assert read_by(compiled, bytes(frame)) is None


@given(
    VERSIONS,
    st.binary(max_size=60),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4),
    st.integers(0, 200),
)
@example(9, b"", [(8, 0x7F), (9, 0xFF)], 0)
@example(3, b"", [(8, 0x7F), (9, 0xFF)], 0)
def test_hostile_bytes_are_read_alike_or_left_to_the_codec(
    version: int, records: bytes, edits: list[tuple[int, int]], cut: int
):
    frame = bytearray(frame_of(version, "client", one_batch(version, ("topic", bytes(16), 3), records)))
    for position, value in edits:
        frame[position % len(frame)] = value
    hostile = bytes(frame[: len(frame) - cut if cut < len(frame) else 0])
    read = read_by(compiled, hostile)
    assert read == read_by(plain, Shaped(hostile))
    if read is None:
        return
    header, request = None, None
    with contextlib.suppress(WireError):
        header, request = decode_request(hostile)
    if header is None or request is None:
        # The codec refuses a name that is not UTF-8; that is all that the kernel does not check.
        with pytest.raises(UnicodeDecodeError):
            hostile[10 : read["start"]].decode()
        return
    data = request.topic_data[0].partition_data[0]
    assert (header.api_version, header.correlation_id) == (read["version"], read["correlation_id"])
    assert (request.acks, data.index) == (read["acks"], read["partition"])
    assert bytes(data.records) == hostile[read["start"] : read["start"] + read["size"]]


class MemoryLog(LogEnd):
    """A log that keeps its batches in memory and refuses a full one."""

    def __init__(self) -> None:
        self.log_start_offset, self.log_end_offset, self.high_watermark = 5, 5, 5
        self.flush_at = 1 << 60
        self.producers = type("Nothing", (), {"unreplicated": ()})
        self.batches: list[bytes] = []

    def append_as_leader(self, batch: Any, leader_epoch: int, from_client: bool = True) -> AppendResult:
        if b"refuse me" in bytes(batch.data):
            raise LookupError
        self.batches.append(bytes(batch.data))
        first = self.log_end_offset
        self.log_end_offset += batch.count
        return AppendResult(first, self.log_end_offset - 1, -1, self.log_start_offset, False)


class MemoryPartition(PartitionEnd):
    def __init__(self, log: MemoryLog, *, is_alone: bool) -> None:
        self.log = log
        self.leader_epoch = 3
        self.is_alone = is_alone
        self.bytes_in = self.records_in = self.plain_produces = 0
        self.appended = self.committed = type("Nobody", (), {"waiting": ()})


def carried_out(kernel: Any, arrived: Any) -> tuple[Any, list[bytes], list[Any]]:
    """What the kernel answers, what was appended, and which permits it asked for."""
    logs, requested = [MemoryLog(), MemoryLog()], []
    alone, replicated = MemoryPartition(logs[0], is_alone=True), MemoryPartition(logs[1], is_alone=False)

    def ask(client_id: bytes | None, version: int, topic: bytes, index: int) -> Permit:
        requested.append((client_id, version, topic, index))
        if index == 9:
            raise LookupError
        rules = None if index == 8 else PlainRules(1 << 60, 1 << 60, False, 10_000)
        return Permit(replicated if index == 7 else alone, 0, index != 7, rules, False)

    way = kernel.PlainProduces(ask, LookupError, 5000)
    replies = way.answer(arrived, 0)
    assert alone.plain_produces + replicated.plain_produces == way.answered
    # A reply that waits only for the ones before it has no offset and no timeout of its own.
    deferred = [
        (bytes(each.reply), None if each.partition is None else (each.end_offset, each.timeout_ms))
        for each in way.deferred
    ]
    answered = (way.bytes_answered, way.answered, bytes(replies), deferred)
    return answered, logs[0].batches + logs[1].batches, requested


def batch_for(kind: str) -> bytes:
    """A batch that the short way takes, or one that it leaves to the ordinary way."""
    is_transaction = kind == "transaction"
    value = b"refuse me" if kind == "refused" else b"value"
    batch = build_batch([(0, b"k", value, [])], producer_id=1, producer_epoch=0, base_sequence=0,
                        transactional=is_transaction)  # fmt: skip
    if kind == "damaged":
        batch[-1] ^= 1
    return bytes(batch)


@given(
    st.lists(
        st.tuples(
            VERSIONS,
            st.sampled_from(["one", "two"]),
            st.sampled_from([0, 0, 1, 7, 8, 9]),
            st.integers(-1, 2),
            st.sampled_from(["good", "good", "refused", "transaction", "damaged"]),
        ),
        max_size=6,
    ),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=2),
    st.integers(0, 40),
)
@example([(3, "one", 7, -1, "good"), (3, "one", 0, 1, "good")], [], 0)
def test_carries_out_frame_after_frame_until_one_is_special(
    requests: list[tuple[int, str, int, int, str]], edits: list[tuple[int, int]], cut: int
):
    frames = []
    for version, name, index, acks, kind in requests:
        request = one_batch(version, (name, name.encode() * 5 + b"0", index), batch_for(kind))
        request.acks = acks
        body = frame_of(version, "client", request)
        frames.append(len(body).to_bytes(4) + body)
    arrived = bytearray(b"".join(frames))
    for place, value in edits if arrived else []:
        arrived[place % len(arrived)] = value
    del arrived[len(arrived) - min(cut, len(arrived)) :]
    outcome = carried_out(compiled, memoryview(bytearray(arrived)))
    assert outcome == carried_out(plain, Shaped(arrived))
    if edits or cut:
        return
    good = 0
    for _, _, index, acks, kind in requests:
        if index in (8, 9) or acks not in (-1, 1) or kind != "good":
            break
        good += 1
    assert outcome[0][:2] == (sum(map(len, frames[:good])), good)
    assert outcome[1] == [batch_for("good")] * good
    # From the first answer that waits for another replica on, all are deferred.
    waits = [index == 7 and acks == -1 for _, _, index, acks, _ in requests[:good]]
    first = waits.index(True) if True in waits else good
    assert [waited_for is not None for _, waited_for in outcome[0][3]] == waits[first:]


@given(VERSIONS, INT32, NAMES, IDS, st.tuples(INT32, INT64, INT64, INT64))
def test_answers_a_produce_as_the_codec_does(
    version: int, correlation_id: int, name: str, topic_id: bytes, numbers: tuple[int, int, int, int]
):
    index, base_offset, append_time, log_start = numbers
    answer = PartitionProduceResponse(
        index=index, base_offset=base_offset, log_append_time_ms=append_time, log_start_offset=log_start
    )
    topic = TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=[answer])
    expected = encode_response(0, version, correlation_id, ProduceResponse(responses=[topic]))
    key = name.encode() if version < 13 else topic_id
    written = compiled.write_produced(
        version, correlation_id, key, index, base_offset, append_time, log_start
    )
    assert bytes(written) == b"".join(bytes(chunk) for chunk in expected)  # type: ignore[arg-type]


@given(
    st.integers(4, 18),
    st.tuples(INT32, INT32),
    st.tuples(NAMES, IDS, INT32),
    st.tuples(INT64, INT64, INT64),
    st.binary(min_size=1, max_size=300),
)
def test_answers_a_fetch_as_the_codec_does(
    version: int,
    ids: tuple[int, int],
    place: tuple[str, bytes, int],
    offsets: tuple[int, int, int],
    records: bytes,
):
    name, topic_id, index = place
    data = PartitionData(
        partition_index=index,
        high_watermark=offsets[0],
        last_stable_offset=offsets[1],
        log_start_offset=offsets[2],
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=records,
    )
    topic = FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[data])
    chunks = encode_response(1, version, ids[0], FetchResponse(session_id=ids[1], responses=[topic]))
    expected = b"".join(bytes(chunk) for chunk in chunks)  # type: ignore[arg-type]
    key = name.encode() if version < 13 else topic_id
    head = compiled.write_fetched(version, *ids, key, index, *offsets, len(records))
    assert head + records + (compiled.FETCHED_TAIL if version >= 12 else b"") == expected
