"""The disk of a leader is full for a while: records are refused or another broker leads, the process
lives on, and when there is space again it goes on without a restart. No log is torn."""

from random import Random

import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import Run
from tests.jepsen.end_state import Expected
from tests.jepsen.faults import Brokers, FullDisk, Leader
from tests.jepsen.probes import leader_client, use_transactions
from tests.jepsen.stage import Settings, Stage
from tests.support.raw_calls import Topic, batch_of, produce_batch

from barnabas.client.admin import NewTopic
from barnabas.errors import ErrorCode

pytestmark = pytest.mark.faults

NO_SPACE = Expected(r"No space left on device", "the disk is full")
SETTINGS = Settings(expected_lines=[NO_SPACE])
PARTITIONS = 3


def make_probe(stage: Stage) -> str:
    """A topic for single attempts to write, with the same leaders as the stage's."""
    name = f"{stage.name}-probe"
    with stage.system.admin() as admin:
        leaders = admin.describe_topics([stage.topic])[stage.topic].partitions
        assignments = {each.partition: [node.id for node in each.replicas] for each in leaders}
        admin.create_topics([NewTopic(name, assignments=assignments)])
    stage.system.wait_until_in_sync(name)
    return name


def attempt(system: FaultyCluster, topic: str, partition: int) -> int:
    """The error code of one attempt to write at the leader."""
    with leader_client(system, topic, partition) as client:
        answer = produce_batch(client, Topic(topic, bytes(16)), batch_of(b"value"), partition=partition)
    return int(answer.error_code)


def test_a_disk_is_full_and_has_space_again(system: FaultyCluster, run: Run) -> None:
    use_transactions(system)
    with run(settings=SETTINGS) as stage:
        chance = Random(stage.seed)
        partition = chance.randrange(PARTITIONS)
        probe = make_probe(stage)
        fault = FullDisk(system, Leader(stage.topic, partition), room_bytes=chance.randint(0, 20_000))
        stage.run(chance.uniform(0.5, 2.0))
        with stage.fault(fault):
            (full,) = fault.broker_ids
            pid = system.brokers[full].pid
            system.wait_until(lambda: fault.hits > 0, "a write has failed")
            for _ in range(5):
                leader = system.leader_of((probe, partition))
                code = attempt(system, probe, partition)
                is_led_by_other = leader != full or system.leader_of((probe, partition)) != full
                assert code == ErrorCode.KAFKA_STORAGE_ERROR or is_led_by_other, code
                stage.run(chance.uniform(0.1, 1.0))
        system.wait_until(lambda: attempt(system, probe, partition) == 0, "records are taken again")
        assert system.brokers[full].pid == pid and system.brokers[full].is_running
        stage.run(1.0)


def test_a_broker_starts_on_a_full_disk(system: FaultyCluster, run: Run) -> None:
    """It works, or ends with a text that says why, and works when there is space."""
    with run(settings=SETTINGS) as stage:
        chance = Random(stage.seed)
        broker_id = chance.choice(list(system.brokers))
        broker = system.brokers[broker_id]
        fault = FullDisk(system, Brokers(broker_id), room_bytes=chance.randint(0, 20_000))
        with stage.fault(fault):
            system.wait_until(lambda: fault.hits > 0, "a write has failed")
            broker.kill()
            before = len(broker.output())
            broker.start()
            stage.run(chance.uniform(3.0, 6.0))
            text = broker.output()[before:]
            stage.note(f"broker {broker_id} {'runs' if broker.is_running else 'has ended'}")
            assert broker.is_running or "is full: make space there" in text
            assert "Traceback" not in text
        if not broker.is_running:
            system.restart(broker_id)
        broker.wait_until_ready()
        stage.run(1.0)
