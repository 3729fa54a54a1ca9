"""The connections of a client, one per broker and purpose: opened when asked for, after a pause if the broker
could not be reached before, and shared by all who ask. Owned by the event loop."""

import asyncio
from typing import NamedTuple

from barnabas.client.backoff import Backoff
from barnabas.client.config import ClientConfig
from barnabas.client.connection import BrokerConnection
from barnabas.client.errors import ClosedError


class Address(NamedTuple):
    host: str
    port: int
    purpose: str = ""
    """Long waits of one purpose (a fetch) must not hold up another (a heartbeat): a connection each."""


class _Line:
    """One address: its open connection, the attempt under way, and how often it failed in a row."""

    def __init__(self) -> None:
        self.connection: BrokerConnection | None = None
        self.attempt: asyncio.Task[BrokerConnection] | None = None
        self.failures = 0
        self.not_before = 0.0


class Connections:
    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._backoff = Backoff(
            config.seconds("reconnect.backoff.ms"), config.seconds("reconnect.backoff.max.ms")
        )
        self._setup = Backoff(
            config.seconds("socket.connection.setup.timeout.ms"),
            config.seconds("socket.connection.setup.timeout.max.ms"),
        )
        self._lines: dict[Address, _Line] = {}
        self._is_closed = False

    async def open(self, address: Address) -> BrokerConnection:
        """The open connection to an address, or a new one; DisconnectedError when it cannot be had."""
        connection = self.existing(address)
        if connection is not None:
            return connection
        if self._is_closed:
            raise ClosedError("the client is closed")
        line = self._lines.setdefault(address, _Line())
        if line.attempt is None:
            line.attempt = asyncio.get_running_loop().create_task(self._connect(address, line))
            # An attempt whose askers have all gone away may fail without anybody to tell.
            line.attempt.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Shielded: one asker that gives up must not end the attempt of the others.
        return await asyncio.shield(line.attempt)

    def existing(self, address: Address) -> BrokerConnection | None:
        line = self._lines.get(address)
        if line is None or line.connection is None or line.connection.is_closed:
            return None
        return line.connection

    def pause_left(self, address: Address) -> float:
        """Seconds until the address may be tried again; 0 when it may be now."""
        line = self._lines.get(address)
        return 0.0 if line is None else max(0.0, line.not_before - asyncio.get_running_loop().time())

    async def close(self) -> None:
        self._is_closed = True
        attempts = [line.attempt for line in self._lines.values() if line.attempt is not None]
        for attempt in attempts:
            attempt.cancel()
        if attempts:
            await asyncio.wait(attempts)
        for line in self._lines.values():
            if line.connection is not None:
                line.connection.close()

    async def _connect(self, address: Address, line: _Line) -> BrokerConnection:
        loop = asyncio.get_running_loop()
        try:
            pause = line.not_before - loop.time()
            if pause > 0:
                await asyncio.sleep(pause)
            line.connection = await BrokerConnection.open(
                address.host, address.port, self._config, self._setup.seconds(line.failures + 1) or None
            )
            line.failures = 0
            return line.connection
        except BaseException:
            line.failures += 1
            line.not_before = loop.time() + self._backoff.seconds(line.failures)
            raise
        finally:
            line.attempt = None
