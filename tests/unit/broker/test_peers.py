"""Connections to other brokers: found by the image, one per purpose, closed when a broker registers again."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.support.scripted_peer import SILENCE, Answer, ScriptedPeer, versions
from tests.support.secured_peer import Sasl, SecuredPeer

from barnabas.broker.peers import Peers
from barnabas.errors import DisconnectedError, ErrorCode, KafkaError, KafkaTimeoutError
from barnabas.ids import ZERO_UUID
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import BrokerRecord, Listener
from barnabas.net.broker_connection import ConnectionSettings
from barnabas.security.client_security import ClientSecurity
from barnabas.security.logins import PasswordLogin
from barnabas.wire.codec import Request
from barnabas.wire.messages import list_groups

LIST_GROUPS = list_groups.API_KEY


def answering(request: Request) -> Answer:
    if request.header.api_key == LIST_GROUPS:
        return list_groups.ListGroupsResponse(error_code=0)
    return versions({LIST_GROUPS: (0, 4)})


def silent(request: Request) -> Answer:
    return SILENCE if request.header.api_key == LIST_GROUPS else answering(request)


def with_broker(image: MetadataImage, port: int, epoch: int, name: str = "INTERNAL") -> MetadataImage:
    return image.apply([BrokerRecord(2, epoch, ZERO_UUID, (Listener(name, "127.0.0.1", port),))])


class Story:
    def __init__(self, port: int, listener: str = "INTERNAL") -> None:
        self.image = with_broker(MetadataImage(), port, 1, listener)
        self.peers = Peers(lambda: self.image, "INTERNAL", ConnectionSettings(client_id="broker-1"))

    def registers_again(self, port: int, epoch: int) -> None:
        self.image = with_broker(self.image, port, epoch)
        self.peers.follow(self.image)

    async def list_groups(self, purpose: str = "control", within_seconds: float = 10) -> Any:
        request = list_groups.ListGroupsRequest()
        return await self.peers.send(2, LIST_GROUPS, request, purpose=purpose, within_seconds=within_seconds)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 30))


def test_requests_of_one_purpose_share_a_connection() -> None:
    async def story() -> None:
        cluster = Story(peer.port)
        for _ in range(3):
            await cluster.list_groups("control")
        assert peer.connections == 1
        await cluster.list_groups("fetch-0")
        assert peer.connections == 2
        await cluster.peers.close()

    with ScriptedPeer(answering) as peer:
        run(story())
    assert {header.client_id for header in peer.requests} == {"broker-1"}


def test_a_broker_that_registers_again_gets_a_new_connection() -> None:
    async def story() -> None:
        cluster = Story(peer.port)
        before = await cluster.peers.connection(2)
        cluster.registers_again(peer.port, epoch=2)
        after = await cluster.peers.connection(2)
        assert before is not after
        assert before.is_closed
        await cluster.peers.close()
        assert after.is_closed

    with ScriptedPeer(answering) as peer:
        run(story())


def test_a_broker_that_moves_is_found_at_its_new_address() -> None:
    async def story() -> None:
        cluster = Story(old.port)
        await cluster.list_groups()
        cluster.registers_again(new.port, epoch=2)
        await cluster.list_groups()
        assert (old.connections, new.connections) == (1, 1)
        await cluster.peers.close()

    with ScriptedPeer(answering) as old, ScriptedPeer(answering) as new:
        run(story())


def test_an_answer_that_is_awaited_when_the_broker_registers_again_fails() -> None:
    async def story() -> None:
        cluster = Story(peer.port)
        waiting = asyncio.ensure_future(cluster.list_groups())
        await asyncio.to_thread(
            peer.wait_until, lambda: LIST_GROUPS in [header.api_key for header in peer.requests]
        )
        cluster.registers_again(peer.port, epoch=2)
        with pytest.raises(DisconnectedError):
            await waiting
        await cluster.peers.close()

    with ScriptedPeer(silent) as peer:
        run(story())


def test_a_connection_attempt_ends_when_the_broker_registers_again() -> None:
    async def story() -> None:
        cluster = Story(peer.port)
        waiting = asyncio.ensure_future(cluster.peers.connection(2))
        await asyncio.to_thread(peer.wait_until, lambda: peer.connections > 0)
        cluster.registers_again(peer.port, epoch=2)
        with pytest.raises(DisconnectedError, match="registered again"):
            await waiting
        await cluster.peers.close()

    with ScriptedPeer(lambda request: SILENCE) as peer:
        run(story())


def test_a_caller_that_is_cancelled_while_connecting_is_cancelled() -> None:
    async def story() -> None:
        cluster = Story(peer.port)
        waiting = asyncio.ensure_future(cluster.peers.connection(2))
        await asyncio.to_thread(peer.wait_until, lambda: peer.connections == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await cluster.peers.close()

    with ScriptedPeer(lambda request: SILENCE) as peer:
        run(story())


def test_no_answer_in_time_is_a_timeout() -> None:
    async def story() -> None:
        cluster = Story(peer.port)
        with pytest.raises(KafkaTimeoutError, match="within"):
            await cluster.list_groups(within_seconds=0.3)
        await cluster.peers.close()

    with ScriptedPeer(silent) as peer:
        run(story())


def test_a_broker_that_does_not_agree_on_versions_in_time_is_a_timeout() -> None:
    async def story() -> None:
        cluster = Story(peer.port)
        with pytest.raises(KafkaTimeoutError, match="cannot connect to broker 2"):
            await cluster.list_groups(within_seconds=0.2)
        await cluster.peers.close()

    with ScriptedPeer(lambda request: SILENCE) as peer:
        run(story())


def test_a_broker_without_an_address_is_not_available() -> None:
    async def story() -> None:
        cluster = Story(9, listener="EXTERNAL")
        for broker_id in (2, 3):
            with pytest.raises(KafkaError, match=f"broker {broker_id} has no address") as caught:
                await cluster.peers.connection(broker_id)
            assert caught.value.code == ErrorCode.BROKER_NOT_AVAILABLE

    run(story())


def test_a_broker_that_refuses_this_one_is_tried_again_and_the_log_says_why_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    login = PasswordLogin("PLAIN", "broker", "wr0ng")
    settings = ConnectionSettings(security=ClientSecurity("SASL_PLAINTEXT", None, login))

    async def story() -> None:
        cluster = Story(peer.port)
        cluster.peers = Peers(lambda: cluster.image, "INTERNAL", settings)
        for _ in range(2):
            with pytest.raises(DisconnectedError, match=r"do not accept each other: .* with PLAIN") as caught:
                await cluster.list_groups()
            assert caught.value.retriable
        await cluster.peers.close()

    with SecuredPeer(answering, sasl=Sasl({"broker": "right"})) as peer:
        run(story())
    assert caplog.text.count("cannot connect to broker 2") == 1
    assert "wr0ng" not in caplog.text
