"""Listening sockets: each turn of the event loop accepts some connections and hands their sockets over.

Asyncio's own server makes a transport and a task for every connection, which costs more than everything else
that a connection needs, and a second descriptor beside ours."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)

# One turn of the loop accepts at most this many connections: many at once must not stop others.
ACCEPTED_MAX = 50
# After an error for lack of descriptors or memory, nothing is accepted for this long.
PAUSE_SECONDS = 1.0
_NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

Options = Sequence[tuple[int, int]]


class Acceptor:
    """The sockets of one address. `accepted` is called with each new connection, a non-blocking socket."""

    def __init__(self, loop: asyncio.AbstractEventLoop, accepted: Callable[[socket.socket], object]) -> None:
        self._loop = loop
        self._accepted = accepted
        self._sockets: list[socket.socket] = []
        self._resuming: asyncio.TimerHandle | None = None
        self.port = 0

    async def bind(self, host: str, port: int, options: Options = ()) -> None:
        """Take the port (0: a free one) on all addresses of the host; OSError if it is taken. Connections
        inherit the options of the socket."""
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.port = port
        try:
            for family, address in dict.fromkeys((entry[0], entry[4]) for entry in found):
                self._bind(family, (address[0], self.port, *address[2:]), options)
        except OSError:
            self.close()
            raise

    def _bind(self, family: int, address: tuple[str | int, ...], options: Options) -> None:
        listening = socket.socket(family, socket.SOCK_STREAM)
        self._sockets.append(listening)
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        for option, value in options:
            listening.setsockopt(socket.SOL_SOCKET, option, value)
        listening.bind(address)
        self.port = listening.getsockname()[1]

    def start(self, backlog: int) -> None:
        """Let `backlog` connections wait in the system's queue, and accept them."""
        for listening in self._sockets:
            listening.listen(backlog)
        self._resume()

    def close(self) -> None:
        if self._resuming is not None:
            self._resuming.cancel()
        for listening in self._sockets:
            self._loop.remove_reader(listening.fileno())
            listening.close()
        self._sockets.clear()

    def _resume(self) -> None:
        self._resuming = None
        for listening in self._sockets:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_MAX):
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_RESOURCES:
                    raise
                self._pause(error)
                return
            connection.setblocking(False)
            self._accepted(connection)

    def _pause(self, error: OSError) -> None:
        if self._resuming is None:
            logger.error("cannot accept connections to port %d for now: %s", self.port, error.strerror)
            self._resuming = self._loop.call_later(PAUSE_SECONDS, self._resume)
        for listening in self._sockets:
            self._loop.remove_reader(listening.fileno())
