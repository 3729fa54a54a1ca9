"""Listening sockets: every address of a host, the queue, and a system without descriptors."""

import asyncio
import errno
import logging
import socket
from unittest import mock

import pytest

from barnabas.net import acceptor
from barnabas.net.acceptor import Acceptor


async def opened(accepted: "asyncio.Queue[socket.socket]", host: str = "127.0.0.1") -> Acceptor:
    acceptor = Acceptor(asyncio.get_running_loop(), accepted.put_nowait)
    await acceptor.bind(host, 0)
    acceptor.start(backlog=10)
    return acceptor


def test_connections_are_handed_over() -> None:
    async def story() -> None:
        accepted: asyncio.Queue[socket.socket] = asyncio.Queue()
        acceptor = await opened(accepted)
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", acceptor.port)) as peer:
                connection = await asyncio.wait_for(accepted.get(), 10)
                assert connection.getpeername() == peer.getsockname()
                assert not connection.getblocking()
                connection.close()
        acceptor.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", acceptor.port)).close()

    asyncio.run(story())


def test_a_port_that_is_taken() -> None:
    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            acceptor = Acceptor(asyncio.get_running_loop(), lambda plain: None)
            with pytest.raises(OSError) as caught:
                await acceptor.bind("127.0.0.1", taken.getsockname()[1])
            assert caught.value.errno == errno.EADDRINUSE

    asyncio.run(story())


def test_without_descriptors_it_pauses_and_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptor, "PAUSE_SECONDS", 0.3)
    calls = 0

    def refusing(listening: socket.socket) -> None:
        nonlocal calls
        calls += 1
        raise OSError(errno.EMFILE, "Too many open files")

    async def story() -> None:
        accepted: asyncio.Queue[socket.socket] = asyncio.Queue()
        with mock.patch.object(socket.socket, "accept", refusing):
            accepting = await opened(accepted)
            peer = socket.create_connection(("127.0.0.1", accepting.port))
            await asyncio.sleep(0.2)
        assert calls == 1
        (await asyncio.wait_for(accepted.get(), 10)).close()
        peer.close()
        accepting.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    assert caplog.text.count("Too many open files") == 1
