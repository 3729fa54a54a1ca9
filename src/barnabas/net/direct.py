"""The socket of a connection in the hands of a kernel, which sends Produce requests and reads their plain
answers itself (kernels/produce_exchange.py). All of it happens in one call on the thread of the event loop,
so the loop does not use the socket meanwhile. What the kernel leaves goes the ordinary way: the rest of a
request to the transport, requests without an answer to those that the connection waits for, other answers to
the reader of frames."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.kernels.produce_exchange import EARLIER_MAX, ProduceExchange
from barnabas.net.broker_connection import CORRELATION_ID_MAX, BrokerConnection, PendingRequest

# A run ends when no answer came for so long, or after so long in any case: the event loop has other work.
WAIT_MS = 2
RUN_MS = 5


class DirectSocket:
    """Sends Produce requests of one version over one connection."""

    def __init__(self, connection: BrokerConnection, api_key: int, version: int) -> None:
        self._connection = connection
        self._api_key = api_key
        self._version = version

    @staticmethod
    def is_possible(connection: BrokerConnection) -> bool:
        """Whether the bytes of the connection are those of its socket, and an event loop waits for both as
        kernels can."""
        transport = connection._transport
        is_encrypted = transport is not None and transport.get_extra_info("sslcontext") is not None
        is_known_loop = isinstance(asyncio.get_running_loop(), asyncio.SelectorEventLoop)
        return transport is not None and is_known_loop and not is_encrypted

    @property
    def is_free(self) -> bool:
        """Whether nothing is under way that the kernel does not know: bytes to be sent, parts of an answer,
        requests that are held back."""
        connection = self._connection
        transport = connection._transport
        if connection.is_closed or transport is None or transport.is_closing():
            return False
        if connection._corked is not None or connection._entering is not connection._pending:
            return False
        if connection._frame is not None or connection._start != connection._end:
            return False
        return transport.get_write_buffer_size() == 0 and self._has_known_requests()

    def _has_known_requests(self) -> bool:
        """Whether all requests without an answer are those of the producer, with ids in a row."""
        pending = self._connection._pending
        if not pending:
            return True
        if len(pending) > EARLIER_MAX or any(each.api_key != self._api_key for each in pending):
            return False
        is_row = pending[-1].correlation_id - pending[0].correlation_id == len(pending) - 1
        return is_row and pending[-1].correlation_id == self._connection._correlation_id

    def begin(self, exchange: ProduceExchange, count: int) -> bool:
        """Prepare for this many requests; False if their correlation ids would not be in a row."""
        connection = self._connection
        earlier = len(connection._pending)
        if connection._correlation_id + count > CORRELATION_ID_MAX:
            return False
        exchange.clear(connection._correlation_id + 1 - earlier, earlier)
        return True

    def run(self, exchange: ProduceExchange) -> None:
        transport = self._connection._transport
        assert transport is not None
        descriptor = transport.get_extra_info("socket").fileno()
        exchange.run(descriptor, self._connection._inbox, 0, 0, WAIT_MS, RUN_MS)

    def end(self, exchange: ProduceExchange, when_answered: Sequence[Callable[[Any], None]]) -> None:
        """Note what happened. `when_answered` has the callbacks of the last requests that were sent, those
        that have no answer yet."""
        connection = self._connection
        connection._start, connection._end = exchange.inbox_start, exchange.inbox_end
        for _ in range(min(exchange.answered, len(connection._pending))):
            connection._pending.popleft()
        first_id = connection._correlation_id + exchange.begun - len(when_answered) + 1
        for index, callback in enumerate(when_answered):
            request = PendingRequest(first_id + index, self._api_key, self._version, None, None, callback)
            connection._pending.append(request)
        connection._correlation_id += exchange.begun
        loop = asyncio.get_running_loop()
        connection.last_active = loop.time()
        rest = exchange.rest
        exchange.release()
        if rest:
            connection._output(rest)
        if connection._start == connection._end:
            connection._start = connection._end = 0
        else:
            loop.call_soon(connection.buffer_updated, 0)
