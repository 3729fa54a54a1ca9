"""How many connections a broker serves, and how fast new ones may come.

As in Kafka, an address that has too many connections loses the new one, and everything else delays it: a
connection that comes too fast, or for which there is no room, is accepted but muted until it is its turn. It
has its turn in the order in which it came; before that it costs neither a TLS handshake nor an answer. The
number of those who wait is limited, as the backlog of a socket is.

Two lines of waiting connections come one after the other: one for the rate of the address, one for the rates
and the room of listener and broker. The listener between brokers has only its own limits if there are others,
so that clients cannot shut out brokers; if there is no room, it takes that of a client that was quiet for the
longest time."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.config.definition import INT_MAX
from barnabas.config.listeners import parse_host_limits
from barnabas.security.quotas import ClientQuotas, is_address
from barnabas.security.rates import Rate, Windows

if TYPE_CHECKING:
    from barnabas.config.values import BrokerConfig
    from barnabas.net.connection import Connection

logger = logging.getLogger(__name__)

# So many connections may wait in one line. Later ones are closed.
WAITING_MAX = 1000
# When more addresses than this have been measured, those that were quiet lately are forgotten.
ADDRESSES_MAX = 10_000


class Line:
    """Connections that wait for their turn. `wait_ms()` is how long the next one has to wait; if it is 0, the
    next one has been counted. It may be infinite: then `look` is called when something has changed."""

    def __init__(self, wait_ms: Callable[[], float], served: Callable[[Connection, float], None]) -> None:
        """`served` gets the connection and the seconds that it has waited here."""
        self._wait_ms = wait_ms
        self._served = served
        self._waiting: deque[tuple[Connection, float]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def enter(self, connection: Connection) -> bool:
        """Serve the connection, or let it wait; False if too many wait already."""
        wait_ms = 0.0
        if self._waiting or (wait_ms := self._wait_ms()):
            self._drop_closed()
            if len(self._waiting) >= WAITING_MAX:
                return False
            connection.mute_until(math.inf)
            self._waiting.append((connection, asyncio.get_running_loop().time()))
            if len(self._waiting) == 1:
                self._look_after(wait_ms)
            return True
        self._served(connection, 0)
        return True

    def look(self) -> None:
        """Serve those who need not wait any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while True:
            self._drop_closed()
            if not self._waiting:
                return
            wait_ms = self._wait_ms()
            if wait_ms:
                self._look_after(wait_ms)
                return
            connection, since = self._waiting.popleft()
            self._served(connection, asyncio.get_running_loop().time() - since)

    def _drop_closed(self) -> None:
        """Who is gone does not use up a turn."""
        if len(self._waiting) >= WAITING_MAX:
            self._waiting = deque(item for item in self._waiting if not item[0].is_closed)
        while self._waiting and self._waiting[0][0].is_closed:
            self._waiting.popleft()

    def _look_after(self, wait_ms: float) -> None:
        if wait_ms < math.inf:
            self._timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self.look)


class Delays:
    """How many connections to one listener were delayed, and for how long altogether."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        if seconds:
            self.count += 1
            self.seconds += seconds


class ConnectionLimits:
    """`serve` is called with each connection that may be served, at once or later."""

    def __init__(self, config: BrokerConfig, serve: Callable[[Connection], None]) -> None:
        self._serve = serve
        self._windows = Windows(config["quota.window.num"], config["quota.window.size.seconds"])
        self._quotas = ClientQuotas({})
        self._per_host: Counter[str] = Counter()
        self._served: dict[Connection, str] = {}
        self._per_listener: Counter[str] = Counter()
        self._broker_rate = Rate(self._windows)
        self._listener_rates: dict[str, Rate] = {}
        self._address_rates: dict[str, Rate] = {}
        self._listener_lines: dict[str, Line] = {}
        self._address_lines: dict[str, Line] = {}
        # By the name of the listener: what was delayed for its own limits, and for the rate of an address.
        self.listener_delays: defaultdict[str, Delays] = defaultdict(Delays)
        self.address_delays: defaultdict[str, Delays] = defaultdict(Delays)
        self.set_limits(config)

    def set_limits(self, config: BrokerConfig) -> None:
        self._set_overrides(parse_host_limits(config["max.connections.per.ip.overrides"]))
        self.connections_max: int = config["max.connections"]
        self.per_host_max: int = config["max.connections.per.ip"]
        self.creations_max: int = config["max.connection.creation.rate"]
        self.listener_limits: dict[str, tuple[int, int]] = {}
        for listener in config.listeners:
            own = config.for_listener(listener)
            self.listener_limits[listener.name] = (
                own["max.connections"],
                own["max.connection.creation.rate"],
            )
        has_others = len(config.listeners) > 1
        self._protected = config.inter_broker_listener.name if has_others else None
        self._look()

    def _set_overrides(self, overrides: dict[str, int]) -> None:
        """Names of hosts are looked up, in a thread if the broker runs already: that may take long."""
        self._named_overrides = overrides
        self.per_host_overrides = {host: limit for host, limit in overrides.items() if is_address(host)}
        if len(self.per_host_overrides) == len(overrides):
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.per_host_overrides = _looked_up(overrides)
            return

        def take(found: asyncio.Future[dict[str, int]]) -> None:
            if self._named_overrides is overrides and not found.cancelled():
                self.per_host_overrides = found.result()

        loop.run_in_executor(None, _looked_up, overrides).add_done_callback(take)

    def follow(self, quotas: ClientQuotas) -> None:
        """Take the rates of addresses."""
        self._quotas = quotas
        self._look()

    # ---- connections come and go

    def opened(self, connection: Connection) -> str | None:
        """A new connection: the reason if it must be closed, else None."""
        host = connection.peer_host
        self._per_host[host] += 1
        if self._per_host[host] > self.per_host_overrides.get(host, self.per_host_max):
            return "too many connections from its address"
        line = self._address_line(host)
        entered = line.enter(connection) if line is not None else self._enter_listener(connection)
        return None if entered else "too many connections wait to be served"

    def closed(self, connection: Connection) -> None:
        host = connection.peer_host
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        listener = self._served.pop(connection, None)
        if listener is not None:
            self._per_listener[listener] -= 1
            _look_at(self._listener_lines)

    @property
    def waiting(self) -> int:
        return sum(
            len(line) for lines in (self._address_lines, self._listener_lines) for line in lines.values()
        )

    @property
    def excess(self) -> Connection | None:
        """The connection to close because there are more than allowed; None if there are not."""
        if len(self._served) <= self.connections_max:
            return None
        others = (each for each, listener in self._served.items() if listener != self._protected)
        return min(others, key=lambda connection: connection.last_active, default=None)

    def _look(self) -> None:
        _look_at(self._address_lines)
        _look_at(self._listener_lines)

    # ---- the line of an address

    def _address_line(self, host: str) -> Line | None:
        """None if connections of this address are not limited."""
        if self._quotas.connection_rate(host) is None and host not in self._address_lines:
            return None
        line = self._address_lines.get(host)
        if line is None:
            self._forget_addresses()
            line = Line(lambda: self._address_wait_ms(host), self._pass_on)
            self._address_lines[host] = line
        return line

    def _address_wait_ms(self, host: str) -> float:
        bound = self._quotas.connection_rate(host)
        if bound is None:
            return 0
        rate = self._address_rates.setdefault(host, Rate(self._windows))
        return self._wait_ms([(rate, bound)])

    def _pass_on(self, connection: Connection, waited_seconds: float) -> None:
        self.address_delays[connection.session.listener.name].add(waited_seconds)
        if not self._enter_listener(connection):
            connection.close()

    def _forget_addresses(self) -> None:
        if len(self._address_lines) < ADDRESSES_MAX:
            return
        now_ms = _now_ms()
        for host, line in list(self._address_lines.items()):
            rate = self._address_rates.get(host)
            if not len(line) and (rate is None or rate.measure(now_ms) == 0):
                del self._address_lines[host]
                self._address_rates.pop(host, None)

    # ---- the line of a listener

    def _enter_listener(self, connection: Connection) -> bool:
        name = connection.session.listener.name
        line = self._listener_lines.get(name)
        if line is None:
            line = self._listener_lines[name] = Line(lambda: self._listener_wait_ms(name), self._admit)
        return line.enter(connection)

    def _listener_wait_ms(self, name: str) -> float:
        connections_max, creations_max = self.listener_limits.get(name, (INT_MAX, INT_MAX))
        if self._per_listener[name] >= connections_max:
            return math.inf
        rates: list[tuple[Rate, float]] = []
        if name != self._protected:
            if len(self._served) >= self.connections_max:
                return math.inf
            if self.creations_max < INT_MAX:
                rates.append((self._broker_rate, self.creations_max))
        if creations_max < INT_MAX:
            rate = self._listener_rates.setdefault(name, Rate(self._windows))
            rates.append((rate, creations_max))
        return self._wait_ms(rates)

    def _wait_ms(self, rates: list[tuple[Rate, float]]) -> float:
        """How long one more connection has to wait. If it need not, it is counted."""
        if not rates:
            return 0
        now_ms = _now_ms()
        longest_ms = 0.0
        for rate, bound in rates:
            rate.record(1, now_ms)
            longest_ms = max(longest_ms, rate.throttle_ms(bound, now_ms) if bound > 0 else math.inf)
        if longest_ms:
            for rate, _ in rates:
                rate.record(-1, now_ms)
        return min(longest_ms, self._windows.milliseconds)

    def _admit(self, connection: Connection, waited_seconds: float) -> None:
        name = connection.session.listener.name
        self.listener_delays[name].add(waited_seconds)
        self._served[connection] = name
        self._per_listener[name] += 1
        self._serve(connection)


def _looked_up(overrides: Mapping[str, int]) -> dict[str, int]:
    """The limits by address. A host that is not known keeps its name, which no connection has."""
    addresses: dict[str, int] = {}
    for host, limit in overrides.items():
        try:
            found = {str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
        except (OSError, UnicodeError) as error:
            logger.warning("max.connections.per.ip.overrides: the host %s is not known: %s", host, error)
            found = {host}
        addresses |= dict.fromkeys(found, limit)
    return addresses


def _look_at(lines: Mapping[str, Line]) -> None:
    for line in list(lines.values()):
        if len(line):
            line.look()


def _now_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1000)
