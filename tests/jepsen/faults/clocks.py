"""Wall clocks that are wrong."""

from tests.jepsen.faults.base import BrokerFault, System
from tests.jepsen.faults.roles import Role


class ClockSkewed(BrokerFault):
    """The clock jumps by so many seconds, back if they are negative; and jumps again when it is healed."""

    def __init__(self, system: System, role: Role, seconds: float) -> None:
        super().__init__(system, role)
        self._seconds = seconds

    def _inject(self) -> None:
        for broker_id in self.broker_ids:
            self.system.shims[broker_id].set_clock(self._seconds)

    def _heal(self) -> None:
        for broker_id in self.broker_ids:
            self.system.shims[broker_id].set_clock(0)

    def describe(self) -> str:
        return f"clock wrong by {self._seconds:+g} s at {self.whom()}"


class ClockStrobing(ClockSkewed):
    """The clock jumps to and fro all the time."""

    def __init__(self, system: System, role: Role, seconds: float, period_seconds: float = 0.2) -> None:
        super().__init__(system, role, seconds)
        self._period_seconds = period_seconds

    def _inject(self) -> None:
        for broker_id in self.broker_ids:
            self.system.shims[broker_id].strobe_clock(self._seconds, self._period_seconds)

    def describe(self) -> str:
        return f"clock jumps by {self._seconds:+g} s every {self._period_seconds:g} s at {self.whom()}"
