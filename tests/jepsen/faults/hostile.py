"""Clients that send hostile bytes on many connections."""

import json
import subprocess

from tests.jepsen.faults.base import BrokerFault, System
from tests.jepsen.faults.roles import Role
from tests.jepsen.helper_process import start_module

PROCESS = "tests.jepsen.faults.hostile_process"


class HostileClients(BrokerFault):
    """A process that opens so many connections per second, directly to the ports of these brokers in turn,
    and sends bytes that no honest client sends. `connections` is how many there were, known after heal()."""

    def __init__(self, system: System, role: Role, connections_per_second: int = 1000, seed: int = 0) -> None:
        super().__init__(system, role)
        self._rate = connections_per_second
        self._seed = seed
        self.connections = 0
        self._process: subprocess.Popen[str] | None = None

    def _inject(self) -> None:
        ports = [str(self.system.brokers[broker_id].port) for broker_id in self.broker_ids]
        self._process = start_module(PROCESS, str(self._rate), str(self._seed), *ports)
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            _, errors = self._process.communicate()
            raise RuntimeError(f"the process with hostile clients has ended:\n{errors}")

    def _heal(self) -> None:
        assert self._process is not None
        # The end of its input is the end of its work.
        printed, _ = self._process.communicate(timeout=30)
        self.connections += json.loads(printed)["connections"]

    def describe(self) -> str:
        return f"{self._rate} hostile connections per second to {self.whom()}"
