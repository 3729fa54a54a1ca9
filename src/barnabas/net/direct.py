"""The socket of a connection in the hands of a kernel, which sends Produce requests and reads their plain
answers itself (kernels/produce_exchange.py). All of it happens in one call on the thread of the event loop,
so the loop does not use the socket meanwhile. What the kernel leaves goes the ordinary way: the rest of a
request to the transport, requests without an answer to those that the connection waits for, other answers to
the reader of frames."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.kernels.produce_exchange import EARLIER_MAX, ProduceExchange
from barnabas.net.broker_connection import BrokerConnection
from barnabas.net.pending import PendingRequest

# A run ends when no answer came for so long, or after so long in any case: the event loop has other work.
WAIT_MS = 2
RUN_MS = 5


class DirectSocket:
    """Sends Produce requests of one version over one connection."""

    def __init__(self, connection: BrokerConnection, api_key: int, version: int) -> None:
        self._connection = connection
        self._api_key = api_key
        self._version = version
        # The correlation id of the next request.
        self._next_id = 0

    @staticmethod
    def is_possible(connection: BrokerConnection) -> bool:
        """Whether the bytes of the connection are those of its socket, and an event loop waits for both as
        kernels can."""
        is_known_loop = isinstance(asyncio.get_running_loop(), asyncio.SelectorEventLoop)
        return is_known_loop and connection.plain_socket is not None

    @property
    def is_free(self) -> bool:
        """Whether nothing is under way that the kernel does not know."""
        return self._connection.has_only(self._api_key, EARLIER_MAX)

    def begin(self, exchange: ProduceExchange, count: int) -> bool:
        """Prepare for this many requests; False if their correlation ids would not be in a row."""
        next_id = self._connection.next_id(count)
        if next_id is None:
            return False
        self._next_id = next_id
        earlier = self._connection.pending
        exchange.clear(next_id - earlier, earlier)
        return True

    def run(self, exchange: ProduceExchange) -> None:
        plain_socket = self._connection.plain_socket
        assert plain_socket is not None
        exchange.run(plain_socket.fileno(), self._connection.inbox, 0, 0, WAIT_MS, RUN_MS)

    def end(self, exchange: ProduceExchange, when_answered: Sequence[Callable[[Any], None]]) -> None:
        """Note what happened. `when_answered` has the callbacks of the last requests that were sent, those
        that have no answer yet."""
        connection = self._connection
        first_id = self._next_id + exchange.begun - len(when_answered)
        waiting = [
            PendingRequest(first_id + index, self._api_key, self._version, None, None, callback)
            for index, callback in enumerate(when_answered)
        ]
        connection.exchanged(exchange.begun, exchange.answered, waiting, exchange.rest)
        if connection.inbox_filled(exchange.inbox_start, exchange.inbox_end):
            asyncio.get_running_loop().call_soon(connection.buffer_updated, 0)
        exchange.release()
