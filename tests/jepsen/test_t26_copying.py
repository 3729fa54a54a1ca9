"""A job that copies a topic in transactions, while brokers and clients are killed: every record is copied
exactly once, and no transaction is left open, so that the stage can read everything in the end."""

from random import Random

from tests.jepsen.conftest import Run
from tests.jepsen.faults import Brokers, Killed
from tests.jepsen.plans import Load

LOAD = Load(writers=1, pipelining_writers=1, readers=1, classic_groups=0, modern_groups=0, copiers=2)


def test_brokers_and_clients_are_killed_while_records_are_copied(run: Run) -> None:
    with run(LOAD) as stage:
        chance = Random(stage.seed)
        brokers = list(stage.system.brokers)
        for broker_id in chance.sample(brokers, len(brokers)):
            # The clients that are killed have a transaction open on the dead broker, or at its successor.
            with stage.fault(Killed(stage.system, Brokers(broker_id))):
                stage.run(chance.uniform(0.0, 2.0))
                stage.bounce_clients()
                stage.wait_for_progress(1)
            stage.wait_until_in_sync()
        stage.wait_for_progress(kinds=("copier",))
