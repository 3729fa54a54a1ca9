"""kill -9 of a leader while records are written: nothing is lost, nothing is there twice, order is kept."""

from tests.jepsen.conftest import Run
from tests.jepsen.faults import Degraded, Killed, Leader
from tests.jepsen.faults.links import BROKERS

from barnabas.testing.relay import Quality

# Followers are a little behind, so there are records that only the leader has when it dies.
NETWORK = Quality(delay_ms=30, jitter_ms=20)


def test_a_leader_is_killed(run: Run) -> None:
    with run() as stage, Degraded(stage.system, NETWORK, others=[BROKERS]):
        stage.run(2.0)
        with stage.fault(Killed(stage.system, Leader(stage.topic))):
            stage.wait_until_writable("writable after the kill")
            stage.wait_for_progress()
        stage.run(2.0)
