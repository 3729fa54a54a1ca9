"""Ports that stay free for those who chose them."""

import gc
import socket

import pytest

from barnabas.testing.ports import ReservedPorts, free_ports


def test_they_are_not_those_of_connections() -> None:
    """Such a port may be taken while a broker is down."""
    ports = free_ports(20)
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        assert len(set(ports)) == 20 and max(ports) < connection.getsockname()[1]


def test_a_server_may_listen_and_nobody_else_gets_the_port() -> None:
    (port,) = free_ports(1)
    for _ in range(2):
        with socket.create_server(("127.0.0.1", port)), pytest.raises(OSError, match="in use"):
            socket.create_server(("127.0.0.1", port))
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))


def test_a_port_is_given_back_with_its_object() -> None:
    ports = ReservedPorts(1)
    (port,) = ports.numbers
    del ports
    gc.collect()
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
