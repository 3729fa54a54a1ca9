"""One of two disks of a broker fails (EIO) or becomes read-only (EROFS): its directory goes offline, other
brokers lead its partitions, and the other disk of the broker serves as before."""

from collections.abc import Sequence
from random import Random

import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import Run
from tests.jepsen.end_state import Expected
from tests.jepsen.faults import BrokenDisk, Brokers, ReadOnlyDisk
from tests.jepsen.stage import Settings

from barnabas.client.types import TopicPartitionInfo

pytestmark = pytest.mark.faults

PARTITIONS = 6
SETTINGS = Settings(
    partitions=PARTITIONS,
    expected_lines=[
        Expected(r"Input/output error|Read-only file system", "the disk has failed"),
        Expected(r"goes offline", "the disk has failed"),
    ],
)


@pytest.fixture(scope="module")
def shape() -> dict[str, object]:
    return {"disks": 2}


def on_disk(system: FaultyCluster, broker_id: int, disk: str, topic: str) -> set[int]:
    """The partitions of a topic that a broker has on one of its disks."""
    places = (system.brokers[broker_id].data_dir / disk).glob(f"{topic}-*")
    return {int(each.name.rpartition("-")[2]) for each in places}


def described(system: FaultyCluster, topic: str) -> Sequence[TopicPartitionInfo]:
    with system.admin() as admin:
        return list(admin.describe_topics([topic])[topic].partitions)


def in_sync_at(system: FaultyCluster, broker_id: int, topic: str) -> set[int]:
    return {
        each.partition
        for each in described(system, topic)
        if broker_id in {node.id for node in each.in_sync_replicas}
    }


def led_by(system: FaultyCluster, broker_id: int, topic: str) -> set[int]:
    return {
        each.partition for each in described(system, topic) if each.leader and each.leader.id == broker_id
    }


def offline_directories(system: FaultyCluster, broker_id: int) -> set[str]:
    """The names of those that the broker says it cannot use."""
    with system.admin() as admin:
        found = admin.describe_log_dirs([broker_id])[broker_id]
    return {path.rpartition("/")[2] for path, directory in found.items() if directory.error is not None}


def test_a_disk_fails(system: FaultyCluster, run: Run) -> None:
    with run(settings=SETTINGS) as stage:
        chance = Random(stage.seed)
        broker_id, disk = chance.choice(list(system.brokers)), chance.choice(["disk-1", "disk-2"])
        lost = on_disk(system, broker_id, disk, stage.topic)
        kept = set(range(PARTITIONS)) - lost
        assert lost and kept
        led = led_by(system, broker_id, stage.topic)
        pid = system.brokers[broker_id].pid
        kind = chance.choice([BrokenDisk, ReadOnlyDisk])
        stage.run(chance.uniform(0.5, 2.0))
        with stage.fault(kind(system, Brokers(broker_id), within=disk)):
            stage.wait_until_writable("writable without the disk")
            system.wait_until(
                lambda: in_sync_at(system, broker_id, stage.topic) == kept, "only the lost replicas have left"
            )
            assert not led_by(system, broker_id, stage.topic) & lost
            assert led_by(system, broker_id, stage.topic) >= led & kept
            assert offline_directories(system, broker_id) == {disk}
            stage.wait_for_progress()
            assert in_sync_at(system, broker_id, stage.topic) == kept
        # A disk that has failed is used again after a restart, as with Kafka.
        assert system.brokers[broker_id].pid == pid
        assert offline_directories(system, broker_id) == {disk}
        stage.note(f"restart of broker {broker_id}")
        system.restart(broker_id)
        stage.wait_until_in_sync()
        assert not offline_directories(system, broker_id)
