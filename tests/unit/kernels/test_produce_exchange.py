"""Produce requests and their answers on a socket, compiled or not: the bytes are those of the codec, and what
is not plain stays for others."""

import socket
import struct
from collections.abc import Iterator
from typing import Any, cast

import pytest
from tests.unit.kernels.interpreting import interpreted

from barnabas.client.producer.direct import exchange_of
from barnabas.client.producer.ports import SenderSettings
from barnabas.kernels import produce_exchange as compiled
from barnabas.wire.codec import RequestHeader, decode_request, encode_request, encode_response
from barnabas.wire.messages import produce

SETTINGS = SenderSettings(
    acks=-1,
    retries=1,
    in_flight_max=5,
    request_bytes_max=10_000,
    request_seconds=30.0,
    delivery_seconds=120.0,
    backoff_seconds=0.001,
    backoff_seconds_max=0.002,
    transactional_id=None,
    is_idempotent=True,
    packing=(0, None, False),  # type: ignore[arg-type]
)
VERSIONS = (9, 10, 11, 12)
INBOX_BYTES = 4096


@pytest.fixture(params=["compiled", "interpreted"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Also what `exchange_of` makes."""
    module = compiled if request.param == "compiled" else interpreted(compiled)
    monkeypatch.setattr("barnabas.client.producer.direct.ProduceExchange", module.ProduceExchange)
    return module


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(10)
    with ours, theirs:
        yield ours, theirs


class Queue:
    """What `exchange_of` needs of a queue."""

    def __init__(self, name: str = "orders", index: int = 3) -> None:
        self.topic, self.name, self.index = self, name, index


def exchange(version: int = 12, client_id: str | None = "me", **where: Any) -> Any:
    return exchange_of(cast(Any, Queue(**where)), client_id, version, SETTINGS)


def answer(correlation_id: int, offset: int, version: int = 12, **changes: Any) -> bytes:
    throttle_ms = changes.pop("throttle_time_ms", 0)
    name = changes.pop("name", "orders")
    fields = {"index": 3, "base_offset": offset, "log_append_time_ms": -1, "log_start_offset": 0} | changes
    topic = produce.TopicProduceResponse(
        name=name, partition_responses=[produce.PartitionProduceResponse(**fields)]
    )
    response = produce.ProduceResponse(responses=[topic], throttle_time_ms=throttle_ms)
    return b"".join(cast(list[bytes], encode_response(0, version, correlation_id, response)))


def run(each: Any, ours: socket.socket, arrived: bytes = b"", wait_ms: int = 1) -> bytes:
    """Run, and return what is left in the inbox."""
    inbox = bytearray(INBOX_BYTES)
    inbox[: len(arrived)] = arrived
    each.run(ours.fileno(), inbox, 0, len(arrived), wait_ms, 1000)
    return bytes(inbox[each.inbox_start : each.inbox_end])


def frames_of(data: bytes) -> list[bytes]:
    frames = []
    while data:
        size = struct.unpack_from(">i", data)[0] + 4
        frames.append(data[:size])
        data = data[size:]
    return frames


def test_the_kernel_under_test_is_the_compiled_one() -> None:
    assert str(compiled.__file__).endswith(".so")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client_id", ["me", "", None])
@pytest.mark.parametrize("size", [61, 126, 127, 128, 16_382, 16_383, 16_384, 70_000])
def test_a_request_has_the_bytes_of_the_codec(
    kernel: Any, sockets: Any, version: int, client_id: str | None, size: int
) -> None:
    ours, theirs = sockets
    records = bytes(index % 251 for index in range(size))
    each = exchange(version, client_id)
    each.clear(7, 0)
    each.add(bytearray(records))
    assert run(each, ours) == b""
    assert (each.begun, each.answered, each.rest, each.is_plain) == (1, 0, b"", True)
    part = produce.PartitionProduceData(index=3, records=memoryview(records))
    request = produce.ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[produce.TopicProduceData(name="orders", partition_data=[part])],
    )
    chunks = encode_request(RequestHeader(0, version, 7, client_id), request)
    expected = b"".join(cast(list[bytes], chunks))
    received = b""
    while len(received) < len(expected):
        received += theirs.recv(100_000)
    assert received == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_answers_that_are_there_make_room_for_more_requests(kernel: Any, sockets: Any, version: int) -> None:
    ours, theirs = sockets
    each = exchange(version)
    each.clear(10, 0)
    for index in range(9):
        each.add(bytearray([index]) * 100)
    for index in range(2):
        theirs.sendall(answer(10 + index, 100 + index, version, log_append_time_ms=index - 1))
    assert run(each, ours) == b""
    # Five at once, then one for each answer; the last two wait for answers that do not come.
    assert (each.begun, each.answered, each.rest) == (7, 2, b"")
    assert each.outcomes() == [(100, -1), (101, 0)]
    requests = [decode_request(frame[4:]) for frame in frames_of(theirs.recv(10_000))]
    assert [request.header.correlation_id for request in requests] == list(range(10, 17))
    found = [bytes(request.message.topic_data[0].partition_data[0].records)[0] for request in requests]
    assert found == list(range(7))


def test_answers_to_earlier_requests_come_first(kernel: Any, sockets: Any) -> None:
    ours, theirs = sockets
    each = exchange()
    each.clear(20, 4)
    for _ in range(3):
        each.add(bytearray(100))
    theirs.sendall(b"".join(answer(20 + index, index) for index in range(5)))
    run(each, ours)
    assert (each.begun, each.answered) == (3, 5)
    requests = [decode_request(frame[4:]) for frame in frames_of(theirs.recv(10_000))]
    assert [request.header.correlation_id for request in requests] == [24, 25, 26]
    # And all over again.
    each.clear(25, 2)
    each.add(bytearray(100))
    run(each, ours)
    assert (each.count, each.begun, each.answered, each.outcomes()) == (1, 1, 0, [])


STRANGE = {
    "an error": answer(11, 5, error_code=6),
    "a leader": answer(11, 5, current_leader=produce.LeaderIdAndEpoch(leader_id=1, leader_epoch=1)),
    "throttled": answer(11, 5, throttle_time_ms=1),
    "an error message": answer(11, 5, error_message="no"),
    "a record's error": answer(11, 5, record_errors=[produce.BatchIndexAndErrorMessage(batch_index=1)]),
    "another request": answer(12, 5),
    "another partition": answer(11, 5, index=4),
    "another topic": answer(11, 5, name="Orders"),
    "a longer name": answer(11, 5, name="orders2"),
    "no frame": struct.pack(">ii", -1, 11),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_not_plain_is_left_in_the_inbox(kernel: Any, sockets: Any, name: str) -> None:
    ours, theirs = sockets
    each = exchange()
    each.clear(10, 0)
    for _ in range(8):
        each.add(bytearray(100))
    left = STRANGE[name] + answer(12, 6)
    theirs.sendall(answer(10, 4) + left)
    assert run(each, ours) == left
    assert (each.answered, each.outcomes(), each.is_plain) == (1, [(4, -1)], False)
    # The room of the plain answer was perhaps not used any more.
    assert each.begun in (5, 6)


def test_an_answer_without_a_request_is_left(kernel: Any, sockets: Any) -> None:
    ours, _ = sockets
    each = exchange()
    each.clear(10, 1)
    arrived = answer(10, 4) + answer(11, 5)
    assert run(each, ours, arrived) == answer(11, 5)
    assert (each.answered, each.is_plain) == (1, False)


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 20, 50])
def test_a_part_of_an_answer_stays_for_later(kernel: Any, sockets: Any, cut: int) -> None:
    ours, theirs = sockets
    each = exchange()
    each.clear(10, 0)
    for _ in range(8):
        each.add(bytearray(100))
    theirs.sendall(answer(10, 4) + answer(11, 5)[:cut])
    assert run(each, ours) == answer(11, 5)[:cut]
    assert (each.begun, each.answered, each.is_plain) == (6, 1, True)
    # The rest arrives.
    theirs.sendall(answer(11, 5)[cut:])
    assert run(each, ours, answer(11, 5)[:cut]) == b""
    assert (each.begun, each.answered, each.outcomes()) == (7, 2, [(4, -1), (5, -1)])


def test_a_socket_that_takes_no_more_gets_the_rest_from_others(kernel: Any, sockets: Any) -> None:
    ours, theirs = sockets
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    each = exchange()
    each.clear(10, 0)
    for index in range(5):
        each.add(bytearray([index]) * 300_000)
    run(each, ours)
    assert 1 <= each.begun < 5
    assert each.rest
    theirs.setblocking(False)
    received = b""
    while True:
        try:
            received += theirs.recv(1_000_000)
        except BlockingIOError:
            break
    frames = frames_of(received + each.rest)
    assert len(frames) == each.begun
    assert decode_request(frames[-1][4:]).header.correlation_id == 10 + each.begun - 1


def test_a_connection_that_ends_is_left_to_others(kernel: Any, sockets: Any) -> None:
    ours, theirs = sockets
    each = exchange()
    each.clear(10, 0)
    for _ in range(8):
        each.add(bytearray(100))
    theirs.sendall(answer(10, 4))
    theirs.shutdown(socket.SHUT_WR)
    run(each, ours)
    assert each.answered == 1
    theirs.close()
    each.clear(11, 0)
    each.add(bytearray(100))
    run(each, ours)
    assert (each.begun, each.answered) == (0, 0)


def test_limits(kernel: Any) -> None:
    each = exchange()
    with pytest.raises(ValueError, match="at most 16 earlier requests, got 17"):
        each.clear(1, 17)
    each.clear(1, 16)
    for _ in range(kernel.REQUESTS_MAX):
        each.add(bytearray(61))
    with pytest.raises(ValueError, match="at most 256 requests"):
        each.add(bytearray(61))
