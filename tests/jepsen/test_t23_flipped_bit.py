"""One bit of a log flips, in a header, in the records or in a length: the batch is never served as valid, and
is replaced with the copy of another replica. Nothing after it is removed, and the broker prints an error."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import Run
from tests.jepsen.end_state import Expected
from tests.jepsen.faults import Brokers, Damaged, Followers, Leader, Role, Stopped
from tests.jepsen.faults.damage import FlippedBit
from tests.jepsen.plans import Load
from tests.jepsen.probes import leader_client, write
from tests.jepsen.stage import Settings
from tests.support.raw_calls import Topic, fetch_partition

from barnabas.client.admin import ElectionType, NewTopic
from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.records.batch import crc_is_valid, iter_headers
from barnabas.records.builder import read_records
from barnabas.wire.messages.fetch import PartitionData

pytestmark = pytest.mark.faults

# Bytes of a batch: base offset, length, leader epoch, magic and checksum, the rest of the header, records.
PLACES = {
    "base offset": range(8),
    "length": range(8, 12),
    "leader epoch": range(12, 16),
    "magic and checksum": range(16, 21),
    "header": range(21, 61),
    "records": range(61, 70),
}
ALARM = "damaged"
REPLACED = "are replaced with the copy of another replica"
SETTINGS = Settings(expected_lines=[Expected(ALARM, "a bit has flipped")])
# The watcher does not look at checksums, and a leader may send a batch that clients refuse because of them;
# check_never_valid looks at both.
ON_A_LEADER = replace(SETTINGS, without={"watched": "a damaged batch may be sent, but not as a valid one"})
# confluent-kafka does not check checksums unless it is told to.
OWN_CLIENTS = Load(libraries=("ours",))


class Wiped:
    """All files of the partition are gone."""

    def apply(self, directory: Path) -> None:
        shutil.rmtree(directory)


def flipped_bit(chance: Random) -> FlippedBit:
    return FlippedBit(chance.choice(PLACES[chance.choice(list(PLACES))]), chance.randrange(8))


def segment_bytes(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def good_batches(data: bytes) -> Mapping[int, bytes]:
    return {header.base_offset: data[at : at + header.size] for at, header in iter_headers(data)}


def replicated_batches(system: FaultyCluster, place: TopicPartition, data: bytes) -> Mapping[int, bytes]:
    """Those of a stopped leader that the new leader has, too. The stopped one may have written others at its
    end that nobody has fetched, and none of them was acknowledged."""
    leader = system.brokers[system.leader_of(place)]
    copies = good_batches(segment_bytes(leader.data_dir / str(place)))
    return {offset: batch for offset, batch in good_batches(data).items() if copies.get(offset) == batch}


def test_a_bit_flips_while_a_broker_is_down(system: FaultyCluster, run: Run) -> None:
    """It is found when the broker starts."""
    with run(settings=SETTINGS) as stage:
        chance = Random(stage.seed)
        partition = chance.randrange(3)
        role: Role = Leader(stage.topic, partition)
        if chance.random() < 0.5:
            role = Followers(stage.topic, partition, count=1)
        stage.run(chance.uniform(1.0, 2.0))
        fault = Damaged(system, role, (stage.topic, partition), flipped_bit(chance))
        with stage.fault(fault):
            (broker_id,) = fault.broker_ids
            before = len(system.brokers[broker_id].output())
            if chance.random() < 0.5:
                stage.wait_until_writable("writable without the broker")
        broker = system.brokers[broker_id]
        assert ALARM in broker.output()[before:]
        system.wait_until(lambda: REPLACED in broker.output()[before:], "the damage is repaired")
        stage.run(1.0)


def test_a_bit_flips_on_a_leader(system: FaultyCluster, run: Run) -> None:
    """A start after a clean stop does not look for damage. A follower that needs the batch notices it."""
    with run(OWN_CLIENTS, ON_A_LEADER) as stage:
        chance = Random(stage.seed)
        place = TopicPartition(stage.topic, chance.randrange(3))
        (leader,) = Leader(*place).find(system)
        broker = system.brokers[leader]
        directory = broker.data_dir / str(place)
        stage.run(chance.uniform(1.0, 2.0))
        damage = flipped_bit(chance)
        with stage.fault(Stopped(system, Brokers(leader))):
            before_damage = segment_bytes(directory)
            good = replicated_batches(system, place, before_damage)
            assert len(good) > len(good_batches(before_damage)) / 2
            damage.apply(directory)
            assert segment_bytes(directory) != before_damage
        stage.note(f"{damage} in {place} of broker {leader}")
        before = len(broker.output())
        stage.wait_until_in_sync()
        with system.admin() as admin:
            admin.elect_leaders(ElectionType.PREFERRED)
        system.wait_until(lambda: system.leader_of(place) == leader, f"broker {leader} leads again")
        check_never_valid(system, place, good)
        with stage.fault(Damaged(system, Followers(*place, count=1), place, Wiped())):
            pass
        stage.wait_until_in_sync()
        system.wait_until(lambda: REPLACED in broker.output()[before:], "the damage is repaired")
        assert ALARM in broker.output()[before:]


def check_never_valid(system: FaultyCluster, place: TopicPartition, good: Mapping[int, bytes]) -> None:
    """Whatever the leader sends: a batch with a right checksum is one that was written."""
    with leader_client(system, *place) as client:
        for offset in good:
            answer = fetch_partition(client, Topic(place.topic, bytes(16)), offset, partition=place.partition)
            data = bytes_of(answer)
            if answer.error_code:
                assert answer.error_code == ErrorCode.CORRUPT_MESSAGE
            for at, header in iter_headers(data):
                batch = data[at : at + header.size]
                is_known = header.base_offset not in good or good[header.base_offset] == batch
                assert is_known or not crc_is_valid(data, at, header.size)


def bytes_of(answer: PartitionData) -> bytes:
    records: Any = answer.records
    return bytes(records or b"")


# ---- without another replica


def make_single(system: FaultyCluster, name: str, broker_id: int) -> None:
    """A topic with two partitions on one broker."""
    with system.admin() as admin:
        admin.create_topics([NewTopic(name, assignments={0: [broker_id], 1: [broker_id]})])
    system.wait_until_in_sync(name)


def values_by_offset(system: FaultyCluster, topic: str, partition: int, end: int) -> dict[int, bytes | int]:
    """What a consumer gets at each offset: a value, or the error code."""
    found: dict[int, bytes | int] = {}
    with leader_client(system, topic, partition) as client:
        for offset in range(end):
            answer = fetch_partition(client, Topic(topic, bytes(16)), offset, partition=partition)
            data = bytes_of(answer)
            sizes = [header.size for _, header in iter_headers(data)]
            records = read_records(data[: sizes[0]]) if sizes else []
            values = [each.value or b"" for each in records if each.offset == offset]
            found[offset] = int(answer.error_code) or (values[0] if values else b"")
    return found


def test_a_bit_flips_in_the_only_replica(system: FaultyCluster, seed: int) -> None:
    """The batch is lost, and only it."""
    chance = Random(seed)
    topic, count = f"single-{chance.randrange(1 << 40):x}", 30
    broker_id = chance.choice(list(system.brokers))
    broker = system.brokers[broker_id]
    make_single(system, topic, broker_id)
    for number in range(count):
        write(system, topic, b"%d" % number)
    before = values_by_offset(system, topic, 0, count)
    assert before == {number: b"%d" % number for number in range(count)}
    output = len(broker.output())
    damage = flipped_bit(chance)
    with Damaged(system, Brokers(broker_id), (topic, 0), damage):
        pass
    system.wait_until_in_sync(topic)
    after = values_by_offset(system, topic, 0, count)
    changed = {offset: found for offset, found in after.items() if found != before[offset]}
    assert changed == {count // 2: ErrorCode.CORRUPT_MESSAGE}, damage
    assert ALARM in broker.output()[output:]
    assert write(system, topic, b"more").offset == count
