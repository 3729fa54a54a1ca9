"""The connections of a client or broker to other brokers, one per address and purpose, shared by all callers,
and the pauses between attempts. If the last attempt failed, the next one waits first. Only for the event
loop."""

import asyncio
import random
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.errors import ClosedError
from barnabas.net.broker_connection import BrokerConnection, ConnectionSettings

JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before the next attempt: doubling pauses with some randomness, so that the clients of
    a broker that went away do not all come back at the same moment."""

    first_seconds: float
    max_seconds: float

    def seconds(self, failures: int) -> float:
        """The pause after this many failures in a row; 0 after none."""
        if failures <= 0 or self.first_seconds <= 0:
            return 0.0
        # The exponent is limited: after a long outage the number would be too large for a float.
        pause = min(self.first_seconds * 2.0 ** min(failures - 1, 30), self.max_seconds)
        return max(pause, 0.0) * random.uniform(1 - JITTER, 1 + JITTER)


class Address(NamedTuple):
    host: str
    port: int
    purpose: str = ""
    """Each purpose has its own connection, so that a long wait (a fetch) does not delay others
    (heartbeats)."""


class _Entry:
    """One address: its open connection, the running attempt, and how often it failed in a row."""

    def __init__(self) -> None:
        self.connection: BrokerConnection | None = None
        self.attempt: asyncio.Task[BrokerConnection] | None = None
        self.failures = 0
        self.not_before = 0.0


class Connections:
    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._backoff = Backoff(settings.reconnect_pause_seconds, settings.reconnect_pause_seconds_max)
        self._setup = Backoff(settings.connect_seconds, settings.connect_seconds_max)
        self._entries: dict[Address, _Entry] = {}
        self._is_closed = False

    async def open(self, address: Address) -> BrokerConnection:
        """The open connection to an address, or a new one; DisconnectedError if it cannot be opened."""
        connection = self.existing(address)
        if connection is not None:
            return connection
        if self._is_closed:
            raise ClosedError("the client is closed")
        entry = self._entries.setdefault(address, _Entry())
        if entry.attempt is None:
            entry.attempt = asyncio.get_running_loop().create_task(self._connect(address, entry))
            # If all callers were cancelled, nobody reads the exception: mark it as read.
            entry.attempt.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Shielded: a caller that is cancelled must not cancel the attempt of the others.
        return await asyncio.shield(entry.attempt)

    def existing(self, address: Address) -> BrokerConnection | None:
        entry = self._entries.get(address)
        if entry is None or entry.connection is None or entry.connection.is_closed:
            return None
        return entry.connection

    def pause_left(self, address: Address) -> float:
        """Seconds until the address may be tried again; 0 means now."""
        entry = self._entries.get(address)
        return 0.0 if entry is None else max(0.0, entry.not_before - asyncio.get_running_loop().time())

    async def close(self) -> None:
        self._is_closed = True
        attempts = [entry.attempt for entry in self._entries.values() if entry.attempt is not None]
        for attempt in attempts:
            attempt.cancel()
        if attempts:
            await asyncio.wait(attempts)
        for entry in self._entries.values():
            if entry.connection is not None:
                entry.connection.close()

    async def _connect(self, address: Address, entry: _Entry) -> BrokerConnection:
        loop = asyncio.get_running_loop()
        try:
            pause = entry.not_before - loop.time()
            if pause > 0:
                await asyncio.sleep(pause)
            entry.connection = await BrokerConnection.open(
                address.host, address.port, self._settings, self._setup.seconds(entry.failures + 1) or None
            )
            entry.failures = 0
            return entry.connection
        except BaseException:
            entry.failures += 1
            entry.not_before = loop.time() + self._backoff.seconds(entry.failures)
            raise
        finally:
            entry.attempt = None
