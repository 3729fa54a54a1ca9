"""Requests that are held back, and answers that are lost."""

import time
from collections.abc import Iterator

import pytest
from tests.jepsen.network import PRODUCE, Frames, Which
from tests.support.echo import PATIENCE_SECONDS
from tests.support.raw_calls import Topic, batch_of, list_offset, new_topic, produce_request
from tests.support.raw_client import RawClient

from barnabas.testing import Broker
from barnabas.testing.links import Links
from barnabas.wire.messages.api_versions import ApiVersionsRequest

API_VERSIONS = 18
LATEST = -1


class Network:
    """A broker behind a link whose frames can be held."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.links = Links(dict)
        self.frames = Frames(self.links, [1])
        self.port = self.links.add(1, broker.port, "client")

    def client(self, client_id: str = "first") -> RawClient:
        return RawClient("127.0.0.1", self.port, client_id=client_id, timeout_seconds=PATIENCE_SECONDS)

    def direct(self) -> RawClient:
        return RawClient("127.0.0.1", self.broker.port)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def network(broker: Broker) -> Iterator[Network]:
    network = Network(broker)
    yield network
    network.links.close()


@pytest.fixture
def topic(network: Network) -> Topic:
    with network.direct() as client:
        return new_topic(client)


def end_of(network: Network, topic: Topic) -> int:
    with network.direct() as client:
        return list_offset(client, topic, LATEST).offset


def wait_for_end(network: Network, topic: Topic, offset: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while end_of(network, topic) != offset:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def send(client: RawClient, topic: Topic) -> None:
    client.send(PRODUCE, 9, produce_request(topic, batch_of(b"value"), acks=1))


def received(client: RawClient) -> int:
    """The error code of the next answer."""
    _, answer = client.receive(PRODUCE, 9)
    return int(answer.responses[0].partition_responses[0].error_code)


def test_a_held_request_arrives_when_it_is_released(network: Network, topic: Topic) -> None:
    with network.client() as client, network.client("other") as other:
        with network.frames.hold(Which(PRODUCE, "first"), count=1) as hold:
            send(other, topic)
            assert received(other) == 0
            send(client, topic)
            # Behind the held request.
            client.send(API_VERSIONS, 0, ApiVersionsRequest())
            assert hold.wait().requests[0].client_id == "first"
            assert client.is_silent(0.1)
            assert end_of(network, topic) == 1
        assert received(client) == 0
        assert client.receive(API_VERSIONS, 0)[1].error_code == 0
        assert end_of(network, topic) == 2
        send(client, topic)
        assert received(client) == 0


def test_a_held_request_arrives_after_its_client_has_gone(network: Network, topic: Topic) -> None:
    with network.frames.hold(Which(PRODUCE)) as hold:
        with network.client() as client:
            send(client, topic)
            hold.wait()
        with network.client() as client:
            assert client.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
        assert end_of(network, topic) == 0
    wait_for_end(network, topic, 1)


def test_a_held_answer_comes_when_it_is_released(network: Network, topic: Topic) -> None:
    with network.client() as client, network.frames.hold(Which(PRODUCE), answers=True) as hold:
        send(client, topic)
        hold.wait()
        assert client.is_silent(0.1)
        assert end_of(network, topic) == 1
        hold.release()
        assert received(client) == 0


def test_a_lost_answer_breaks_the_connection_but_the_request_was_carried_out(
    network: Network, topic: Topic
) -> None:
    with network.frames.lose_answers(Which(PRODUCE), count=1) as lost, network.client() as client:
        assert client.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
        send(client, topic)
        assert client.is_closed_by_peer()
        assert len(lost.requests) == 1
        with network.client() as again:
            send(again, topic)
            assert received(again) == 0
    assert end_of(network, topic) == 2
    assert network.frames.requests[PRODUCE] == 2


def test_all_answers_of_an_api_are_lost_until_it_is_healed(network: Network, topic: Topic) -> None:
    lost = network.frames.lose_answers(Which(PRODUCE))
    for _ in range(2):
        with network.client() as client:
            send(client, topic)
            assert client.is_closed_by_peer()
    lost.heal()
    with network.client() as client:
        send(client, topic)
        assert received(client) == 0
    assert end_of(network, topic) == 3


def test_waiting_for_a_request_that_does_not_come(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.jepsen.network.WAIT_SECONDS_MAX", 0.01)
    with network.frames.hold(Which(PRODUCE)) as hold, pytest.raises(TimeoutError, match="came: 0"):
        hold.wait()


def test_large_frames_and_frames_in_pieces_are_passed_on(network: Network) -> None:
    with network.client() as client:
        frame = client.encode(API_VERSIONS, 0, ApiVersionsRequest(), 5)
        for byte in frame + frame:
            client.send_bytes(bytes([byte]))
        assert [client.receive(API_VERSIONS, 0)[0] for _ in range(2)] == [5, 5]


@pytest.mark.parametrize("garbage", [b"\xff" * 100, b"\x7f" * 100])
def test_what_is_not_a_frame_is_passed_on(network: Network, garbage: bytes) -> None:
    with network.client() as client:
        client.send_bytes(garbage)
        assert client.is_closed_by_peer()
