"""Files beside a log are lost or full of garbage (indexes, producer snapshots, checkpoints of leader epochs
and high watermarks): they are rebuilt, and all answers are the same."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.faults.transaction_stage import READ_COMMITTED
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import Run
from tests.jepsen.end_state import Expected
from tests.jepsen.faults import Brokers, Killed, Stopped
from tests.jepsen.faults.damage import HIGH_WATERMARKS, Damage, GarbledFiles, LostFiles
from tests.jepsen.probes import leader_client, transactional_id_at
from tests.jepsen.stage import Settings
from tests.support.raw_calls import (
    FETCH,
    TIMESTAMP,
    Topic,
    batch_of,
    fetch_request,
    list_offset,
    produce_batch,
)
from tests.support.raw_client import RawClient
from tests.support.raw_transactions import RawTransactional

from barnabas.client.admin import NewTopic
from barnabas.errors import ErrorCode
from barnabas.wire.messages import offset_for_leader_epoch

pytestmark = pytest.mark.faults

KINDS = ("*.index", "*.timeindex", "*.txnindex", "*.snapshot", "leader-epoch-checkpoint", HIGH_WATERMARKS)
# Small, so that there are several of each file.
SMALL = {"internal.segment.bytes": "20000", "index.interval.bytes": "1000"}
REBUILT = Expected(
    r"is damaged|are damaged; rebuilding|was not closed cleanly; recovering", "files are damaged"
)


def damage_of(kind: str, chance: Random) -> Damage:
    return LostFiles((kind,)) if chance.random() < 0.5 else GarbledFiles((kind,))


def has_files(directory: Path, kind: str) -> bool:
    return any((directory / kind).parent.resolve().glob(Path(kind).name))


def test_side_files_are_damaged_under_load(system: FaultyCluster, run: Run) -> None:
    with run(settings=Settings(topic_configs=SMALL, expected_lines=[REBUILT])) as stage:
        chance = Random(stage.seed)
        stage.run(chance.uniform(2.0, 3.0))
        broker_id = chance.choice(list(system.brokers))
        down = chance.choice([Killed, Stopped])
        with stage.fault(down(system, Brokers(broker_id))):
            for place in stage.partitions:
                directory = system.brokers[broker_id].data_dir / str(place)
                for kind in chance.sample(KINDS, chance.randint(1, len(KINDS))):
                    if has_files(directory, kind):
                        damage = damage_of(kind, chance)
                        damage.apply(directory)
                        stage.note(f"{damage} in {place}")
            if chance.random() < 0.5:
                stage.wait_until_writable("writable without the broker")
        stage.wait_for_progress()


# ---- the same answers

BATCHES = 60
PRODUCER_ID = 1 << 40
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3


class Partition:
    """A partition on one broker, with records of all kinds, and questions about it."""

    def __init__(self, system: FaultyCluster, name: str, broker_id: int) -> None:
        self._system = system
        with system.admin() as admin:
            admin.create_topics([NewTopic(name, configs=SMALL, assignments={0: [broker_id]})])
        system.wait_until_in_sync(name)
        self.topic = Topic(name, bytes(16))
        self.directory = system.brokers[broker_id].data_dir / f"{name}-0"
        self._broker_id = broker_id

    def ask(self, question: Callable[[RawClient], Any]) -> Any:
        with leader_client(self._system, self.topic.name) as client:
            return question(client)

    def fill(self, client: RawClient) -> None:
        for number in range(BATCHES):
            self.send(client, number)
            if number % 10 == 3:
                writer = RawTransactional(client, transactional_id_at(self._system, self._broker_id))
                writer.init()
                assert writer.produce(self.topic, b"in a transaction") == 0
                # The last one stays open.
                if number < BATCHES - 10:
                    assert writer.end(commit=number % 20 == 3) == 0

    def send(self, client: RawClient, number: int) -> tuple[int, int]:
        """Batch `number` of an idempotent producer: the error code and the offset."""
        at = TIMESTAMP + number * 1000
        value = b"%d" % number + b"." * 1000
        batch = batch_of(value, timestamp=at, base_sequence=number, producer_id=PRODUCER_ID, producer_epoch=0)
        answer = produce_batch(client, self.topic, batch)
        return answer.error_code, answer.base_offset

    def answers(self, client: RawClient) -> dict[str, Any]:
        times = [EARLIEST, LATEST, MAX_TIMESTAMP, *range(TIMESTAMP, TIMESTAMP + BATCHES * 1000, 700)]
        found = {at: list_offset(client, self.topic, at) for at in times}
        end = found[LATEST].offset
        stable = list_offset(client, self.topic, LATEST, isolation_level=READ_COMMITTED).offset
        return {
            "offsets": {at: (each.error_code, each.offset, each.timestamp) for at, each in found.items()},
            "stable": stable,
            "fetches": [self._fetched(client, offset) for offset in range(0, end, 7)],
            "duplicates": [self.send(client, number) for number in range(BATCHES - 5, BATCHES)],
            "out of order": self.send(client, BATCHES + 3)[0],
            "epoch ends": self._epoch_end(client, 0),
        }

    def _fetched(self, client: RawClient, offset: int) -> tuple[Any, ...]:
        request = fetch_request(self.topic, offset)
        request.isolation_level = READ_COMMITTED
        data = client.call(FETCH, 12, request).responses[0].partitions[0]
        aborted = sorted((each.producer_id, each.first_offset) for each in data.aborted_transactions or ())
        ends = (data.last_stable_offset, data.high_watermark, data.log_start_offset)
        return (data.error_code, bytes(data.records or b""), aborted, ends)

    def _epoch_end(self, client: RawClient, epoch: int) -> tuple[int, int, int]:
        partition = offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        topics = [offset_for_leader_epoch.OffsetForLeaderTopic(topic=self.topic.name, partitions=[partition])]
        request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=topics)
        answer = client.call(offset_for_leader_epoch.API_KEY, 4, request).topics[0].partitions[0]
        return answer.error_code, answer.leader_epoch, answer.end_offset


def test_the_answers_are_the_same(system: FaultyCluster, seed: int) -> None:
    chance = Random(seed)
    broker_id = chance.choice(list(system.brokers))
    partition = Partition(system, f"answers-{chance.randrange(1 << 40):x}", broker_id)
    partition.ask(partition.fill)
    before = partition.ask(partition.answers)
    assert before["out of order"] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert all(code == 0 for code, _ in before["duplicates"])
    assert any(aborted for _, _, aborted, _ in before["fetches"])
    assert before["stable"] < before["offsets"][LATEST][1]
    for kind in chance.sample(KINDS, len(KINDS)):
        down = chance.choice([Killed, Stopped])
        damage = damage_of(kind, chance)
        with down(system, Brokers(broker_id)):
            assert has_files(partition.directory, kind)
            damage.apply(partition.directory)
        system.wait_until_in_sync(partition.topic.name)
        assert partition.ask(partition.answers) == before, f"{down.__name__}, {damage}"
