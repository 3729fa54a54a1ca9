"""ZooKeeper servers that are down, paused or slow, and sessions that expire."""

import re
import socket

from kazoo.client import KazooClient
from tests.jepsen.faults.base import Fault, System

from barnabas.testing.links import ZOOKEEPER, LinkFault
from barnabas.testing.relay import Quality
from barnabas.testing.zookeeper import ZooKeeper

ANSWER_BYTES_MAX = 1 << 16
SERVER_SECONDS_MAX = 5.0
START_SECONDS_MAX = 30
# ZooKeeper makes the password of a session of its id and this number, with Java's random numbers.
PASSWORD_SECRET, PASSWORD_BYTES = 0xB3415C00, 16


class ZooKeeperDown(Fault):
    """All servers are killed; healed by a start with the same data."""

    def _inject(self) -> None:
        for server in self.system.zookeepers.servers.values():
            server.kill()

    def _heal(self) -> None:
        self.system.zookeepers.start()

    def describe(self) -> str:
        return "kill -9 of all ZooKeeper servers"


class ZooKeeperServerKilled(Fault):
    """One server of several is killed: this one, or the one that leads at the moment of injection."""

    def __init__(self, system: System, number: int | None = None) -> None:
        super().__init__(system)
        self._number = number
        self.killed: int | None = None

    def _inject(self) -> None:
        servers = self.system.zookeepers.servers
        self.killed = self._number
        if self.killed is None:
            self.system.wait_until(lambda: any(map(is_leader, servers.values())), "a ZooKeeper server leads")
            self.killed = next(number for number, server in servers.items() if is_leader(server))
        servers[self.killed].kill()

    def _heal(self) -> None:
        self.system.zookeepers.start()

    def describe(self) -> str:
        if self._number is not None:
            return f"kill -9 of ZooKeeper server {self._number}"
        return "kill -9 of the leading ZooKeeper server" + (f" ({self.killed})" if self.killed else "")


class ZooKeeperPaused(Fault):
    """All servers are paused (SIGSTOP): connections stay, nothing is answered."""

    def _inject(self) -> None:
        for server in self.system.zookeepers.servers.values():
            server.pause()

    def _heal(self) -> None:
        for server in self.system.zookeepers.servers.values():
            server.resume()

    def describe(self) -> str:
        return "pause of all ZooKeeper servers"


class ZooKeeperSlow(Fault):
    """Every request of a broker to ZooKeeper, and every answer, takes half of `delay_ms` longer."""

    def __init__(self, system: System, delay_ms: float) -> None:
        super().__init__(system)
        self._delay_ms = delay_ms
        self._faults: list[LinkFault] = []

    def _inject(self) -> None:
        quality = Quality(delay_ms=self._delay_ms / 2)
        for broker_id in self.system.brokers:
            self._faults.append(self.system.degrade(broker_id, ZOOKEEPER, quality))

    def _heal(self) -> None:
        while self._faults:
            self._faults.pop().heal()

    def describe(self) -> str:
        return f"ZooKeeper slower by {self._delay_ms:g} ms"


class SessionsExpired(Fault):
    """The sessions of all brokers expire at once; nothing is left to heal. `sessions` are their ids.

    With `of_connected`, those of brokers that have one: others may be cut off from ZooKeeper."""

    def __init__(self, system: System, *, of_connected: bool = False) -> None:
        super().__init__(system)
        self._of_connected = of_connected
        self.sessions: set[int] = set()

    def _inject(self) -> None:
        # A broker that is paused may have no session.
        brokers = [broker for broker in self.system.brokers.values() if broker.is_answering]
        least = 1 if self._of_connected else len(brokers)

        def are_connected() -> bool:
            self.sessions = set().union(*map(sessions_of, self.system.zookeepers.servers.values()))
            return len(self.sessions) >= least

        self.system.wait_until(are_connected, f"{least} brokers are connected to ZooKeeper")
        connect = self.system.zookeepers.connect
        clients = [
            KazooClient(hosts=connect, client_id=(each, password_of(each)), timeout=SERVER_SECONDS_MAX)
            for each in self.sessions
        ]
        # First take over all sessions, then end them: so they expire together.
        for client in clients:
            client.start(timeout=START_SECONDS_MAX)
        for client in clients:
            client.stop()
            client.close()

    def _heal(self) -> None:
        """Nothing."""

    def describe(self) -> str:
        return "expiry of the ZooKeeper sessions of all brokers"


def asked(server: ZooKeeper, command: str) -> str:
    """The answer to one of ZooKeeper's four-letter commands; empty if the server does not run."""
    if not server.is_running:
        return ""
    with socket.create_connection(("127.0.0.1", server.port), timeout=SERVER_SECONDS_MAX) as connection:
        connection.sendall(command.encode())
        answer = b""
        while data := connection.recv(ANSWER_BYTES_MAX):
            answer += data
    return answer.decode()


def is_leader(server: ZooKeeper) -> bool:
    return "Mode: leader" in asked(server, "srvr")


def sessions_of(server: ZooKeeper) -> set[int]:
    """The ids of the sessions that are connected to this server."""
    return {int(found, 16) for found in re.findall(r"sid=0x([0-9a-f]+)", asked(server, "cons"))} - {0}


def password_of(session: int) -> bytes:
    """java.util.Random(session ^ secret).nextBytes(16)"""
    multiplier, mask = 0x5DEECE66D, (1 << 48) - 1
    seed = (session ^ PASSWORD_SECRET ^ multiplier) & mask
    password = b""
    while len(password) < PASSWORD_BYTES:
        seed = (seed * multiplier + 0xB) & mask
        password += (seed >> 16).to_bytes(4, "little")
    return password
