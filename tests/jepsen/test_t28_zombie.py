"""Another producer takes a transactional id in the middle of a transaction, while the old one is stopped
(SIGSTOP). When the old one goes on (SIGCONT), it is fenced: its transaction was aborted, and nothing that it
sends later is written."""

from pathlib import Path
from random import Random

from tests.faults.zombie_process import ZombieProcess
from tests.jepsen import transactions
from tests.jepsen.clients import library
from tests.jepsen.clients.base import TransactionalWriter, encode
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic, Run
from tests.jepsen.faults import Restarted, TransactionCoordinator
from tests.jepsen.plans import Load
from tests.jepsen.stage import Stage
from tests.support.raw_calls import Topic
from tests.support.raw_transactions import NEW, OLD, RawTransactional

from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.records.batch import BatchHeader

LOAD = Load(writers=1, pipelining_writers=1, readers=1, classic_groups=0, modern_groups=0)
# The zombies of each library and their successors of the other one.
LIBRARIES = {"barnabas": "confluent", "confluent-kafka": "ours"}
TIMEOUT_MS = "60000"
PARTITIONS = 2
SENT_MIN = 6
FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}


class Zombie:
    """A producer in a process, and the topic that only it and its successor write to."""

    def __init__(self, stage: Stage, system: FaultyCluster, topic: str, name: str) -> None:
        self.system = system
        self.library = name
        self.places = transactions.places_of(topic, PARTITIONS)
        self.topic = Topic(topic, bytes(16))
        self.transactional_id = f"{stage.name}-{name}"
        directory = stage.directory / name
        directory.mkdir()
        self.process = self._start(directory)

    def _start(self, directory: Path) -> ZombieProcess:
        where = (self.system.bootstrap, self.transactional_id, self.topic.name, TIMEOUT_MS)
        return ZombieProcess(directory, self.library, *where)

    def stop_in_transaction(self, records: int) -> None:
        self.system.wait_until(lambda: self.process.sent >= records, f"{self.library} has sent {records}")
        self.process.stop()
        assert transactions.undecided(self.system, self.places) == set(self.places)

    def successor(self) -> TransactionalWriter:
        """When it has begun, the transaction of the zombie is aborted."""
        chosen = library(LIBRARIES[self.library])
        writer = chosen.transactional_writer(self.system.bootstrap, "successor", self.transactional_id)
        transactions.wait_until_decided(self.system, self.places)
        return writer

    def batches(self) -> dict[TopicPartition, list[BatchHeader]]:
        return {place: transactions.batches(self.system, place) for place in self.places}

    def check_refusals(self) -> None:
        refusals = self.process.refusals()
        assert set(refusals) == {"send", "commit"}, self.process.lines()[-2:]
        assert "Fenced" in refusals.values(), self.process.lines()[-2:]

    def check_codes(self, first: BatchHeader) -> None:
        """What the brokers answer to requests like those of the zombie."""
        for version in (OLD, NEW):
            client = transactions.RoutingClient(self.system, self.transactional_id)
            old = RawTransactional(client, self.transactional_id, version)
            old.id, old.epoch = first.producer_id, first.producer_epoch
            assert {old.produce(self.topic, b"late"), old.end(True)} <= FENCED


def test_a_producer_is_stopped_and_its_transactional_id_taken(
    run: Run, system: FaultyCluster, make_topic: MakeTopic
) -> None:
    with run(LOAD) as stage:
        chance = Random(stage.seed)
        zombies = [Zombie(stage, system, make_topic(PARTITIONS), name) for name in LIBRARIES]
        try:
            for zombie in zombies:
                zombie.stop_in_transaction(SENT_MIN + chance.randrange(20))
            for zombie in zombies:
                wake(stage, zombie, chance)
        finally:
            for zombie in zombies:
                zombie.process.kill()


def wake(stage: Stage, zombie: Zombie, chance: Random) -> None:
    system, places = zombie.system, zombie.places
    before = zombie.batches()
    is_fault = stage.seed % 3 == 0
    successor = zombie.successor()
    try:
        successor.begin()
        sent = successor.send([(place, number) for number, place in enumerate(places)])
        assert all(each.error is None for each in sent), sent
        is_awake_inside = chance.random() < 0.5
        if not is_awake_inside:
            successor.commit()
        if is_fault:
            with stage.fault(Restarted(system, TransactionCoordinator(zombie.transactional_id), clean=False)):
                pass
        zombie.process.wake()
        zombie.check_refusals()
        zombie.check_codes(before[places[0]][0])
        if is_awake_inside:
            successor.commit()
    finally:
        successor.close()
    transactions.wait_until_decided(system, places)
    expected = {place: [encode(number)] for number, place in enumerate(places)}
    assert transactions.committed_values(system, places) == expected
    check_logs(before, zombie.batches())


def check_logs(
    before: dict[TopicPartition, list[BatchHeader]], after: dict[TopicPartition, list[BatchHeader]]
) -> None:
    """Behind the zombie's records are its abort marker, one record of the successor and the commit marker,
    which a new coordinator may write again."""
    for place, batches in after.items():
        old = before[place]
        assert batches[: len(old)] == old
        assert {batch.producer_epoch for batch in old} == {old[0].producer_epoch}
        late = [batch for batch in batches[len(old) :] if not batch.is_control]
        assert [batch.producer_epoch > old[0].producer_epoch for batch in late] == [True]
        assert batches[len(old)].is_control and batches[-1].is_control
