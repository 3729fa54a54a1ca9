"""A connection: agreed versions, answers in order, and no crash whatever a broker sends."""

import asyncio
import gc
import struct
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.scripted_peer import CLOSE, SILENCE, Answer, ScriptedPeer, versions

from barnabas.errors import (
    DisconnectedError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
)
from barnabas.net.broker_connection import BrokerConnection, ConnectionSettings
from barnabas.wire.codec import Request, encode_response
from barnabas.wire.messages import api_versions, list_groups, metadata

METADATA, LIST_GROUPS = metadata.API_KEY, list_groups.API_KEY
SPOKEN = {METADATA: (0, 13), LIST_GROUPS: (0, 4)}


def with_versions(answer: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
    return lambda request: versions(SPOKEN) if request.header.api_key == 18 else answer(request)


def talk(
    answer: Callable[[Request], Answer],
    story: Callable[[BrokerConnection], Coroutine[Any, Any, None]],
    **settings: Any,
) -> ScriptedPeer:
    async def run(peer: ScriptedPeer) -> None:
        connection = await BrokerConnection.open("127.0.0.1", peer.port, ConnectionSettings(**settings))
        try:
            await story(connection)
        finally:
            connection.close()
            await asyncio.sleep(0)

    with ScriptedPeer(answer) as peer:
        asyncio.run(run(peer))
    return peer


async def closing(connection: BrokerConnection) -> None:
    """Wait until the connection is closed; fail if it is not."""
    closed = asyncio.Event()
    connection.when_closed = lambda _: closed.set()
    if not connection.is_closed:
        await asyncio.wait_for(closed.wait(), 5)


def echo_cluster_id(request: Request) -> Answer:
    return metadata.MetadataResponse(cluster_id=f"c{len(request.message.topics)}")


def asking(topics: int) -> metadata.MetadataRequest:
    return metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=f"t{i}") for i in range(topics)]
    )


def test_api_versions_is_sent_again_in_the_version_that_the_broker_names() -> None:
    def answer(request: Request) -> Answer:
        header = request.header
        if header.api_version > 2:
            refusal = versions({})
            refusal.error_code = ErrorCode.UNSUPPORTED_VERSION
            refusal.api_keys[0].max_version = 2
            return b"".join(encode_response(18, 0, header.correlation_id, refusal))
        return versions(SPOKEN)

    async def story(connection: BrokerConnection) -> None:
        assert connection.version_of(METADATA) == 13

    peer = talk(answer, story)
    assert [header.api_version for header in peer.requests] == [4, 2]


def test_after_a_refusal_without_a_version_api_versions_is_sent_in_version_0() -> None:
    def answer(request: Request) -> Answer:
        if request.header.api_version > 0:
            refusal = api_versions.ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
            return b"".join(encode_response(18, 0, request.header.correlation_id, refusal))
        return versions(SPOKEN)

    async def story(connection: BrokerConnection) -> None:
        assert connection.supports(METADATA)

    assert [header.api_version for header in talk(answer, story).requests] == [4, 0]


def test_requests_are_sent_in_the_highest_common_version() -> None:
    async def story(connection: BrokerConnection) -> None:
        await connection.send(LIST_GROUPS, list_groups.ListGroupsRequest())
        await connection.send(LIST_GROUPS, list_groups.ListGroupsRequest(), version_max=2)
        with pytest.raises(UnsupportedVersionError, match="find_coordinator"):
            await connection.send(10, list_groups.ListGroupsRequest())

    peer = talk(with_versions(lambda request: list_groups.ListGroupsResponse()), story)
    assert [header.api_version for header in peer.requests[1:]] == [4, 2]


def test_pipelined_requests_get_their_own_answers() -> None:
    async def story(connection: BrokerConnection) -> None:
        futures = [connection.request(METADATA, asking(count)) for count in range(20)]
        assert connection.pending == 20
        answers = await asyncio.gather(*futures)
        assert [answer.cluster_id for answer in answers] == [f"c{count}" for count in range(20)]

    talk(with_versions(echo_cluster_id), story)


@pytest.mark.parametrize(
    "garbage",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 3) + b"abc",
        struct.pack(">ii", 4, 1_000_000),
        struct.pack(">iib", 5, 2, 0),
        struct.pack(">ii", 60, 2) + b"\xff" * 56,
    ],
    ids=["negative", "too short", "wrong correlation id", "cut", "nonsense"],
)
def test_an_unreadable_answer_ends_the_connection_with_a_kafka_error(garbage: bytes) -> None:
    async def story(connection: BrokerConnection) -> None:
        both = [connection.request(METADATA, asking(1)) for _ in range(2)]
        for future in both:
            with pytest.raises(DisconnectedError) as caught:
                await asyncio.wait_for(asyncio.shield(future), 5)
            assert caught.value.retriable
        assert connection.is_closed
        with pytest.raises(DisconnectedError):
            connection.request(METADATA, asking(1))

    talk(with_versions(lambda request: garbage), story)


@settings(max_examples=25, deadline=None)
@given(body=st.binary(max_size=80))
def test_any_bytes_are_an_answer_or_a_kafka_error(body: bytes) -> None:
    def answer(request: Request) -> Answer:
        return struct.pack(">ii", len(body) + 4, request.header.correlation_id) + body

    async def story(connection: BrokerConnection) -> None:
        try:
            response = await connection.send(METADATA, asking(1), within=5)
        except KafkaError:
            assert connection.is_closed
        else:
            assert isinstance(response, metadata.MetadataResponse)

    talk(with_versions(answer), story)


def test_an_answer_without_a_request_closes_the_connection() -> None:
    twice = metadata.MetadataResponse(cluster_id="c")

    def answer(request: Request) -> Answer:
        frame = b"".join(encode_response(METADATA, 13, request.header.correlation_id, twice))
        return frame + frame

    async def story(connection: BrokerConnection) -> None:
        assert (await connection.send(METADATA, asking(0))).cluster_id == "c"
        await closing(connection)

    talk(with_versions(answer), story)


@pytest.mark.parametrize("buffer_bytes", [-1, 32768], ids=["buffer as it is", "small buffer"])
def test_large_and_small_answers_follow_each_other(buffer_bytes: int) -> None:
    def answer(request: Request) -> Answer:
        names = [f"{number:0200}" for number in range(len(request.message.topics) * 5000)]
        return metadata.MetadataResponse(topics=[metadata.MetadataResponseTopic(name=name) for name in names])

    async def story(connection: BrokerConnection) -> None:
        for size in (3, 0, 2, 1, 0):
            answered = await connection.send(METADATA, asking(size), within=60)
            assert len(answered.topics) == 5000 * size

    talk(with_versions(answer), story, receive_buffer_bytes=buffer_bytes)


def test_a_request_without_an_answer_in_time_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def story(connection: BrokerConnection) -> None:
        other = connection.request(METADATA, asking(0))
        with pytest.raises(KafkaTimeoutError):
            await connection.send(METADATA, asking(0), within=0.05)
        assert connection.is_closed
        with pytest.raises(DisconnectedError):
            await other
        gc.collect()

    talk(with_versions(lambda request: SILENCE), story)
    assert not caplog.records, "a future has an exception that was never read"


def test_when_the_broker_closes_the_connection_waiting_requests_fail() -> None:
    async def story(connection: BrokerConnection) -> None:
        with pytest.raises(DisconnectedError, match="the broker closed it"):
            await connection.send(METADATA, asking(0))

    talk(with_versions(lambda request: CLOSE), story)


def test_a_lost_connection_is_freed_without_the_garbage_collector() -> None:
    async def lost(port: int) -> weakref.ref[BrokerConnection]:
        connection = await BrokerConnection.open("127.0.0.1", port, ConnectionSettings())
        try:
            await connection.send(METADATA, asking(0))
        except DisconnectedError:
            return weakref.ref(connection)
        raise AssertionError("the broker did not close the connection")

    async def story(port: int) -> None:
        gc.disable()
        try:
            connection = await lost(port)
            # The transport forgets it in one of the next turns of the loop.
            for _ in range(10):
                await asyncio.sleep(0)
            assert connection() is None
        finally:
            gc.enable()

    with ScriptedPeer(with_versions(lambda request: CLOSE)) as peer:
        asyncio.run(story(peer.port))


def test_cancelling_one_request_does_not_disturb_the_others() -> None:
    async def story(connection: BrokerConnection) -> None:
        leaving = asyncio.ensure_future(connection.send(METADATA, asking(1)))
        staying = asyncio.ensure_future(connection.send(METADATA, asking(2)))
        await asyncio.sleep(0)
        leaving.cancel()
        assert (await staying).cluster_id == "c2"
        assert not connection.is_closed

    talk(with_versions(echo_cluster_id), story)


def test_an_idle_connection_is_closed_unless_it_waits_for_an_answer() -> None:
    async def story(connection: BrokerConnection) -> None:
        pending = connection.request(METADATA, asking(0))
        await asyncio.sleep(0.2)
        assert not connection.is_closed
        pending.cancel()

    talk(with_versions(lambda request: SILENCE), story, idle_seconds=0.02)

    async def idle(connection: BrokerConnection) -> None:
        await closing(connection)

    talk(with_versions(echo_cluster_id), idle, idle_seconds=0.02)


def test_a_broker_that_cannot_be_reached_is_a_disconnected_error() -> None:
    with ScriptedPeer(lambda request: CLOSE) as peer:
        port = peer.port

    async def run() -> None:
        with pytest.raises(DisconnectedError, match=f"connection refused by 127.0.0.1:{port}"):
            await BrokerConnection.open("127.0.0.1", port, ConnectionSettings())

    asyncio.run(run())


def test_an_invalid_host_name_is_a_disconnected_error() -> None:
    async def run() -> None:
        with pytest.raises(DisconnectedError, match=r"the name 'a\.\.b' does not resolve"):
            await BrokerConnection.open("a..b", 9092, ConnectionSettings())

    asyncio.run(run())


def test_callbacks_get_the_answers_in_order_and_one_call_follows_those_that_arrived_together() -> None:
    async def story(connection: BrokerConnection) -> None:
        answers: list[str] = []
        read = asyncio.Event()
        counts: list[int] = []

        def after_reading() -> None:
            assert not connection.is_reading
            counts.append(len(answers))
            if len(answers) == 3:
                read.set()

        def note(answer: metadata.MetadataResponse) -> None:
            assert connection.is_reading
            answers.append(answer.cluster_id or "")

        connection.when_read = after_reading
        connection.cork()
        for size in range(3):
            connection.ask(METADATA, asking(size), note)
        await asyncio.sleep(0.05)
        assert not answers, "nothing is sent before uncork()"
        connection.uncork()
        await asyncio.wait_for(read.wait(), 30)
        assert answers == ["c0", "c1", "c2"]
        assert counts[-1] == 3
        # The connection sends at once again.
        assert (await connection.send(METADATA, asking(4), within=30)).cluster_id == "c4"

    talk(with_versions(echo_cluster_id), story)


def test_callbacks_get_the_error_of_a_closed_connection() -> None:
    async def story(connection: BrokerConnection) -> None:
        outcomes: list[object] = []
        connection.ask(METADATA, asking(1), outcomes.append)
        connection.close("enough")
        assert outcomes == [], "not before the caller of close() has finished"
        await asyncio.sleep(0)
        (error,) = outcomes
        assert isinstance(error, DisconnectedError) and "enough" in error.message
        with pytest.raises(DisconnectedError):
            connection.ask(METADATA, asking(1), outcomes.append)
        connection.cork()
        connection.uncork()

    talk(with_versions(lambda request: SILENCE), story)
