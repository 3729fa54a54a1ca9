"""Limits on connections: too many from an address are closed; what is too fast or has no room waits."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.support.raw_client import RawClient

from barnabas.client.admin import Admin, AlterConfigOp, ConfigResource, ConfigResourceType
from barnabas.security.quotas import IP, Entity
from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest

API_VERSIONS = 18
# The brokers here measure over three windows of a second: two seconds count as quiet at first.
WINDOW_SETTINGS = {"quota.window.num": "3", "quota.window.size.seconds": "1"}
QUIET_SECONDS = 2
ALL_BROKERS = ConfigResource(ConfigResourceType.BROKER, "")


def asked(port: int, source_host: str | None = None) -> RawClient:
    """A client that has sent a request."""
    client = RawClient("127.0.0.1", port, source_host=source_host)
    client.send(API_VERSIONS, 3, ApiVersionsRequest(client_software_name="t", client_software_version="1"))
    return client


def is_served(client: RawClient) -> bool:
    client.receive(API_VERSIONS, 3)
    return True


@contextmanager
def many_asked(count: int, port: int) -> Iterator[list[RawClient]]:
    with ExitStack() as stack:
        yield [stack.enter_context(asked(port)) for _ in range(count)]


def seconds_until_served(count: int, port: int) -> float:
    """Open so many connections at once; all are served. How long that takes."""
    began = time.monotonic()
    with many_asked(count, port) as clients:
        for client in clients:
            assert is_served(client)
        return time.monotonic() - began


# ---- rates


@pytest.mark.parametrize(
    "overrides",
    [
        {"max.connection.creation.rate": "5"},
        {"listener.name.plaintext.max.connection.creation.rate": "5"},
    ],
    ids=["broker", "listener"],
)
def test_connections_that_come_too_fast_are_delayed_and_not_refused(overrides: dict[str, str]) -> None:
    with Broker({**WINDOW_SETTINGS, **overrides}) as broker:
        # The first 10 are those of the quiet time; then 5 a second.
        took = seconds_until_served(16, broker.port)
        assert took >= (16 - 5 * QUIET_SECONDS) / 5 - 1
        assert took >= 0.4


def rate_of(admin: Admin, address: str | None, rate: float | None) -> None:
    entity: Entity = ((IP, address),)
    admin.alter_client_quotas({entity: {"connection_creation_rate": rate}})


@pytest.mark.parametrize("address", ["127.0.0.1", None], ids=["named", "default"])
def test_the_rate_of_an_address(address: str | None) -> None:
    with Broker(WINDOW_SETTINGS) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        assert seconds_until_served(30, broker.port) < 5
        rate_of(admin, address, 5)
        assert seconds_until_served(16, broker.port) >= 0.4
        # A quota that is removed holds nobody any more, also not those who wait.
        with many_asked(40, broker.port) as clients:
            rate_of(admin, address, None)
            assert all(is_served(client) for client in clients)


def test_the_rate_of_an_address_does_not_delay_others() -> None:
    with Broker(WINDOW_SETTINGS) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        rate_of(admin, "127.0.0.1", 1)
        with many_asked(10, broker.port) as waiting:
            # On Linux every address that begins with 127 is this machine.
            with asked(broker.port, "127.0.0.77") as other:
                assert is_served(other)
            assert waiting[-1].is_silent(0.1)


def test_those_who_leave_while_they_wait_use_up_no_turn() -> None:
    with Broker(WINDOW_SETTINGS) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        rate_of(admin, None, 2)
        with many_asked(60, broker.port):
            pass
        # Alone, 60 connections would take half a minute.
        assert seconds_until_served(1, broker.port) < 10


# ---- numbers


def test_above_max_connections_new_ones_wait_until_there_is_room() -> None:
    with Broker({"max.connections": "3"}) as broker, ExitStack() as stack:
        served = [stack.enter_context(asked(broker.port)) for _ in range(3)]
        assert all(is_served(client) for client in served)
        waiting = stack.enter_context(asked(broker.port))
        assert waiting.is_silent(0.3)
        served[0].close()
        assert is_served(waiting)
        last = stack.enter_context(asked(broker.port))
        assert last.is_silent(0.2)
        waiting.close()
        assert is_served(last)


def test_a_listener_has_its_own_number() -> None:
    listeners = {
        "listeners": "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "listener.name.plaintext.max.connections": "2",
    }
    with Broker(listeners) as broker, ExitStack() as stack:
        with asked(broker.port) as client:
            is_served(client)
        served = [stack.enter_context(asked(broker.port)) for _ in range(2)]
        assert all(is_served(client) for client in served)
        waiting = stack.enter_context(asked(broker.port))
        assert waiting.is_silent(0.3)
        served.pop().close()
        assert is_served(waiting)


def test_when_max_connections_is_lowered_the_quietest_are_closed() -> None:
    with Broker() as broker, ExitStack() as stack:
        clients = []
        for _ in range(5):
            clients.append(stack.enter_context(asked(broker.port)))
            assert is_served(clients[-1])
            time.sleep(0.02)
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.incremental_alter_configs({ALL_BROKERS: [AlterConfigOp("max.connections", "3")]})
        assert clients[0].is_closed_by_peer()
        assert clients[1].is_closed_by_peer()


def test_too_many_connections_of_an_address_are_closed_even_if_they_would_wait() -> None:
    with Broker({"max.connections": "2", "max.connections.per.ip": "4"}) as broker, ExitStack() as stack:
        clients = [stack.enter_context(asked(broker.port)) for _ in range(4)]
        assert is_served(clients[0])
        assert clients[2].is_silent(0.1)
        with asked(broker.port) as surplus:
            assert surplus.is_closed_by_peer()
