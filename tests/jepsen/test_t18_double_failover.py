"""A leads and dies, B leads and dies, A leads again, in quick succession (KIP-101, KIP-279): the logs of the
replicas do not diverge."""

from collections.abc import Iterator
from random import Random

import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import Run
from tests.jepsen.end_state import check_epochs, check_replicas, read_leaderships
from tests.jepsen.faults import Brokers, Degraded, Killed
from tests.jepsen.faults.links import BROKERS
from tests.jepsen.partitions import in_sync_ids, partition_info
from tests.jepsen.probes import write

from barnabas.client.admin import NewTopic, OffsetSpec
from barnabas.ids import TopicPartition
from barnabas.testing.relay import Quality

pytestmark = pytest.mark.faults

# Followers are a little behind, so a leader that dies has records that no other has.
NETWORK = Quality(delay_ms=30, jitter_ms=20)


def test_a_leader_returns_and_leads_again(run: Run) -> None:
    with run() as stage, Degraded(stage.system, NETWORK, others=[BROKERS]):
        system, chance = stage.system, Random(stage.seed)
        place = TopicPartition(stage.topic, chance.randrange(stage.events.partitions))
        # The first replica leads whenever it is in sync at an election.
        first = partition_info(system, place).replicas[0].id
        assert system.leader_of(place) == first
        epoch = partition_info(system, place).leader_epoch
        with stage.fault(Killed(system, Brokers(first))):
            system.wait_until(lambda: system.leader_of(place) not in (-1, first), "another broker leads")
            # A short epoch: its leader gets a few records or none.
            stage.run(chance.uniform(0.0, 0.3))
        second = system.leader_of(place)
        system.wait_until(lambda: first in in_sync_ids(system, place), f"broker {first} is in sync")
        with stage.fault(Killed(system, Brokers(second))):
            system.wait_until(lambda: system.leader_of(place) == first, f"broker {first} leads again")
            stage.run(chance.uniform(0.0, 0.3))
        assert partition_info(system, place).leader_epoch >= epoch + 2


# ---- elections of replicas that are out of sync


def leads_alone(system: FaultyCluster, place: TopicPartition, broker_id: int, other: int) -> None:
    """The other one dies, then this one leads with what it has."""
    system.kill(other)
    system.restart(broker_id)
    system.wait_until(lambda: system.leader_of(place) == broker_id, f"broker {broker_id} leads")


def test_two_replicas_lead_in_turn_without_the_other(system: FaultyCluster, seed: int) -> None:
    """Each election is unclean, so records are lost, as the topic allows; in the end both have the same."""
    chance = Random(seed)
    one, other = chance.sample(sorted(system.brokers), 2)
    place = TopicPartition(f"in-turn-{seed}-{one}-{other}", 0)
    configs = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    with system.admin() as admin:
        admin.create_topics([NewTopic(place.topic, assignments={0: [one, other]}, configs=configs)])
    system.wait_until_in_sync(place.topic)
    epochs = [partition_info(system, place).leader_epoch]
    write_some(system, place, chance, "both")
    system.kill(other)
    write_some(system, place, chance, f"only {one}")
    for leader, dead in ((other, one), (one, other), (other, one)):
        leads_alone(system, place, leader, dead)
        epochs.append(partition_info(system, place).leader_epoch)
        write_some(system, place, chance, f"only {leader} in epoch {epochs[-1]}")
    system.restart(one)
    system.wait_until_in_sync(place.topic)
    write_some(system, place, chance, "both again")
    assert epochs == sorted(set(epochs))
    assert list(differences(system, place)) == []


def write_some(system: FaultyCluster, place: TopicPartition, chance: Random, what: str) -> None:
    for number in range(chance.randint(0, 4)):
        write(system, place.topic, f"{what}, {number}".encode())


def differences(system: FaultyCluster, place: TopicPartition) -> Iterator[str]:
    with system.admin() as admin:
        end = admin.list_offsets({place: OffsetSpec.LATEST})[place].offset
    directories = {id_: broker.data_dir for id_, broker in system.brokers.items()}
    yield from check_replicas(directories, {place: end})
    yield from check_epochs(read_leaderships(system.zookeeper_connect), [place.topic])
