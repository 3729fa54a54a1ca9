"""A leader stops for longer than its session (SIGSTOP) and goes on (SIGCONT): by then another one leads, and
nothing that the old one does is seen by anybody."""

from tests.jepsen.conftest import Run
from tests.jepsen.faults import Leader, Paused


def test_a_leader_is_paused(run: Run) -> None:
    with run() as stage:
        stage.run(2.0)
        with stage.fault(Paused(stage.system, Leader(stage.topic))):
            stage.wait_until_writable("writable after the pause began")
            # The new leader gets records that the old one does not know of.
            stage.run(3.0)
        stage.run(2.0)
