"""Clients whose credentials are refused say so at once, instead of trying until their time is over."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from tests.support.scripted_peer import Answer
from tests.support.secured_peer import Sasl, SecuredPeer

from barnabas import Admin, AsyncProducer, Consumer, Producer, TopicPartition
from barnabas.client.errors import AuthenticationError
from barnabas.wire.codec import Request
from barnabas.wire.messages import find_coordinator, init_producer_id, metadata

SECONDS_MAX = 10.0


@pytest.fixture
def peer() -> Iterator[SecuredPeer]:
    def answer(request: Request) -> Answer:
        raise AssertionError("nobody is let in")

    apis = {find_coordinator.API_KEY: (0, 6), init_producer_id.API_KEY: (0, 5), metadata.API_KEY: (0, 13)}
    with SecuredPeer(answer, sasl=Sasl({"alice": "right"}), apis=apis) as peer:
        yield peer


def settings(peer: SecuredPeer) -> dict[str, str]:
    return {
        "bootstrap.servers": peer.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": "wrong",
    }


@pytest.fixture(autouse=True)
def is_soon() -> Iterator[None]:
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < SECONDS_MAX


REFUSED = "not the credentials of a user"


def test_an_admin(peer: SecuredPeer) -> None:
    with Admin(settings(peer)) as admin, pytest.raises(AuthenticationError, match=REFUSED):
        admin.list_topics()


def test_a_producer(peer: SecuredPeer) -> None:
    with Producer(settings(peer)) as producer, pytest.raises(AuthenticationError, match=REFUSED):
        producer.send("t", b"v")


def test_a_transactional_producer(peer: SecuredPeer) -> None:
    config = {**settings(peer), "transactional.id": "x"}
    with Producer(config) as producer, pytest.raises(AuthenticationError, match=REFUSED):
        producer.init_transactions()


def test_a_producer_of_asyncio(peer: SecuredPeer) -> None:
    async def story() -> None:
        async with AsyncProducer(settings(peer)) as producer:
            with pytest.raises(AuthenticationError, match=REFUSED):
                await producer.send("t", b"v")

    asyncio.run(story())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_of_a_group(peer: SecuredPeer, protocol: str) -> None:
    with Consumer({**settings(peer), "group.id": "g", "group.protocol": protocol}) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(AuthenticationError, match=REFUSED):
            consumer.poll(SECONDS_MAX)


def test_a_consumer_with_partitions_of_its_own(peer: SecuredPeer) -> None:
    with Consumer({**settings(peer), "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        with pytest.raises(AuthenticationError, match=REFUSED):
            consumer.poll(SECONDS_MAX)


def test_the_password_is_in_no_repr(peer: SecuredPeer) -> None:
    from barnabas.client.config import admin_config

    config = admin_config({**settings(peer), "sasl.password": "p4ssw0rd"})
    assert "p4ssw0rd" not in f"{config!r} {config.security!r} {config.connection_settings!r}"
