"""Processes that are killed, stopped, paused and started again."""

import os
import signal

from tests.jepsen.faults.base import BrokerFault, System
from tests.jepsen.faults.roles import Role


class Killed(BrokerFault):
    """kill -9; healed by a start with the same data."""

    def _inject(self) -> None:
        running = [each for each in map(self.system.brokers.get, self.broker_ids) if each and each.is_running]
        # All at once; only then wait for the end of each.
        for broker in running:
            os.kill(broker.pid, signal.SIGKILL)
        for broker in running:
            broker.kill()

    def _heal(self) -> None:
        self.system.restart(*self.broker_ids)

    def describe(self) -> str:
        return f"kill -9 of {self.whom()}"


class Stopped(BrokerFault):
    """A clean shutdown (SIGTERM), one after the other; healed by a start."""

    def _inject(self) -> None:
        for broker_id in self.broker_ids:
            self.system.brokers[broker_id].stop()

    def _heal(self) -> None:
        self.system.restart(*self.broker_ids)

    def describe(self) -> str:
        return f"clean stop of {self.whom()}"


class Restarted(BrokerFault):
    """Stopped cleanly or killed, and started again at once, one after the other; nothing is left to heal."""

    def __init__(self, system: System, role: Role, *, clean: bool = True) -> None:
        super().__init__(system, role)
        self._clean = clean

    def _inject(self) -> None:
        for broker_id in self.broker_ids:
            if not self._clean:
                self.system.brokers[broker_id].kill()
            self.system.restart(broker_id)

    def _heal(self) -> None:
        """Nothing."""

    def describe(self) -> str:
        return f"{'clean' if self._clean else 'unclean'} restart of {self.whom()}"


class Paused(BrokerFault):
    """SIGSTOP: the process stops in the middle of whatever it does; healed by SIGCONT."""

    def _inject(self) -> None:
        for broker_id in self.broker_ids:
            self.system.brokers[broker_id].pause()

    def _heal(self) -> None:
        for broker_id in self.broker_ids:
            self.system.brokers[broker_id].resume()

    def describe(self) -> str:
        return f"pause of {self.whom()}"
