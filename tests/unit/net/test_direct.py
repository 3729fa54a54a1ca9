"""When a kernel may use the socket of a connection, and when it must not."""

import asyncio
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.support.certificates import Authority
from tests.support.scripted_peer import SILENCE, Answer, ScriptedPeer, versions
from tests.support.secured_peer import SecuredPeer

from barnabas.client.config import admin_config
from barnabas.net.broker_connection import CORRELATION_ID_MAX, BrokerConnection, ConnectionSettings
from barnabas.net.direct import DirectSocket
from barnabas.security.tls import TlsSettings, server_context
from barnabas.wire.codec import Request
from barnabas.wire.messages import metadata, produce

VERSION = 12


def answer(request: Request) -> Answer:
    """Versions; nothing else is answered."""
    ranges = {produce.API_KEY: (3, VERSION), metadata.API_KEY: (0, 13)}
    return versions(ranges) if request.header.api_key == 18 else SILENCE


def with_connection(story: Callable[[BrokerConnection], Coroutine[Any, Any, None]]) -> None:
    async def run(port: int) -> None:
        connection = await BrokerConnection.open("127.0.0.1", port, ConnectionSettings())
        try:
            await story(connection)
        finally:
            connection.close()
            await asyncio.sleep(0)

    with ScriptedPeer(answer) as peer:
        asyncio.run(run(peer.port))


def direct(connection: BrokerConnection) -> DirectSocket:
    return DirectSocket(connection, produce.API_KEY, VERSION)


def ask(connection: BrokerConnection) -> None:
    connection.ask(produce.API_KEY, produce.ProduceRequest(acks=-1), lambda _: None, version_max=VERSION)


def test_a_new_connection_is_free_also_with_requests_of_the_producer() -> None:
    async def story(connection: BrokerConnection) -> None:
        assert DirectSocket.is_possible(connection)
        assert direct(connection).is_free
        ask(connection)
        ask(connection)
        assert direct(connection).is_free

    with_connection(story)


def another_request(connection: BrokerConnection) -> None:
    ask(connection)
    connection.request(metadata.API_KEY, metadata.MetadataRequest())
    ask(connection)


def a_gap(connection: BrokerConnection) -> None:
    ask(connection)
    connection._correlation_id += 1
    ask(connection)


def a_request_without_an_answer(connection: BrokerConnection) -> None:
    ask(connection)
    connection.send_no_reply(produce.API_KEY, produce.ProduceRequest(acks=0), version_max=VERSION)


def many_requests(connection: BrokerConnection) -> None:
    for _ in range(17):
        ask(connection)


def a_part_of_an_answer(connection: BrokerConnection) -> None:
    ask(connection)
    connection._inbox[:3] = b"\0\0\0"
    connection.buffer_updated(3)


def a_part_of_a_long_answer(connection: BrokerConnection) -> None:
    ask(connection)
    connection._inbox[:8] = struct.pack(">ii", 100_000, 1)
    connection.buffer_updated(8)


def bytes_to_be_sent(connection: BrokerConnection) -> None:
    vars(connection._transport)["get_write_buffer_size"] = lambda: 1


OBSTACLES = [
    another_request,
    a_gap,
    a_request_without_an_answer,
    many_requests,
    a_part_of_an_answer,
    a_part_of_a_long_answer,
    bytes_to_be_sent,
    BrokerConnection.cork,
    BrokerConnection.hold,
    BrokerConnection.close,
]


@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda each: each.__name__)
def test_a_connection_with_something_else_under_way_is_not_free(
    obstacle: Callable[[BrokerConnection], object],
) -> None:
    async def story(connection: BrokerConnection) -> None:
        obstacle(connection)
        assert not direct(connection).is_free

    with_connection(story)


def test_correlation_ids_that_begin_again_are_not_in_a_row() -> None:
    async def story(connection: BrokerConnection) -> None:
        connection._correlation_id = CORRELATION_ID_MAX - 3
        cleared: list[tuple[int, int]] = []

        class Exchange:
            def clear(self, *given: int) -> None:
                cleared.append((given[0], given[1]))

        exchange: Any = Exchange()
        assert direct(connection).begin(exchange, 3)
        assert not direct(connection).begin(exchange, 4)
        assert cleared == [(CORRELATION_ID_MAX - 2, 0)]

    with_connection(story)


def test_an_encrypted_connection_has_bytes_that_the_kernel_does_not_know() -> None:
    authority = Authority()
    server = authority.server()
    stores = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": server.key_pem(),
        "ssl.keystore.certificate.chain": server.chain_pem,
    }
    settings = {"security.protocol": "SSL", "ssl.ca.pem": authority.pem}

    async def run(port: int) -> None:
        config = admin_config({"bootstrap.servers": f"127.0.0.1:{port}", **settings})
        connection = await BrokerConnection.open("127.0.0.1", port, config.connection_settings)
        assert not DirectSocket.is_possible(connection)
        connection.close()
        await asyncio.sleep(0)

    with SecuredPeer(answer, server_context(TlsSettings.from_config(stores.get))) as peer:
        asyncio.run(run(peer.port))
