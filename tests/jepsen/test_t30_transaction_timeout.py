"""A client dies in a transaction: after the transaction's timeout, not before, the coordinator aborts it. The
last stable offset moves, DescribeTransactions shows it, and the client cannot go on if it comes back."""

import time
from pathlib import Path
from random import Random

import pytest
from tests.faults.transaction_stage import write
from tests.faults.zombie_process import LIBRARIES, ZombieProcess
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import Run
from tests.jepsen.faults import Fault, Killed, Leader, Paused, TransactionCoordinator
from tests.jepsen.probes import use_transactions
from tests.jepsen.probes import write as write_plain
from tests.jepsen.stage import Stage
from tests.jepsen.transactions import (
    RoutingClient,
    committed_values,
    ends,
    places_of,
    transaction_state,
    undecided,
    wait_until_decided,
)
from tests.support.raw_calls import Topic
from tests.support.raw_transactions import NEW, OLD, RawTransactional

from barnabas.client.admin import NewTopic, TransactionDescription
from barnabas.errors import ErrorCode
from barnabas.ids import OFFSETS_TOPIC, TopicPartition

pytestmark = pytest.mark.faults

PARTITIONS = 2
TIMEOUT_MS = 4000
# For the abort after the timeout, on a busy machine; if the coordinator dies, others need its session, too.
ABORT_SECONDS_MAX = 10.0
FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
COMMITTED_OFFSET = 7


def make_topic(stage: Stage) -> tuple[Topic, list[TopicPartition]]:
    """A topic without other writers."""
    name = f"{stage.name}-open"
    with stage.system.admin() as admin:
        admin.create_topics([NewTopic(name, PARTITIONS, 3)])
    stage.system.wait_until_in_sync(name)
    return Topic(name, bytes(16)), places_of(name, PARTITIONS)


def described(system: FaultyCluster, name: str) -> TransactionDescription:
    TransactionCoordinator(name).find(system)
    with system.admin() as admin:
        return admin.describe_transactions([name])[name]


def committed_offset(system: FaultyCluster, group: str, place: TopicPartition) -> int | None:
    with system.admin() as admin:
        found = admin.list_consumer_group_offsets(group).get(place)
    return None if found is None else found.offset


def begin(writer: RawTransactional, topic: Topic, group: str) -> None:
    """A transaction with a record for each partition and an offset of a group, which nobody ends."""
    writer.init(TIMEOUT_MS)
    write(writer, topic, b"left open", range(PARTITIONS))
    if writer.transaction_version == OLD:
        assert writer.add_offsets(group) == 0
    assert writer.commit_offset(group, topic, COMMITTED_OFFSET) == 0


def possible_faults(system: FaultyCluster, name: str, topic: str) -> list[Fault]:
    return [
        Killed(system, TransactionCoordinator(name)),
        Paused(system, TransactionCoordinator(name)),
        Killed(system, Leader(topic)),
    ]


def test_a_client_dies_in_a_transaction(system: FaultyCluster, run: Run) -> None:
    use_transactions(system)
    with run() as stage:
        chance = Random(stage.seed)
        name, group = f"{stage.name}-dead", f"{stage.name}-group"
        topic, places = make_topic(stage)
        writer = RawTransactional(RoutingClient(system, name, group), name, chance.choice([OLD, NEW]))
        began = time.monotonic()
        begin(writer, topic, group)
        write_plain(system, topic.name, b"after it")
        check_open(system, writer, places)
        if chance.random() < 0.75:
            with stage.fault(chance.choice(possible_faults(system, name, topic.name))):
                stage.run(chance.uniform(0.5, 5.0))
        while undecided(system, places):
            stage.run(0.05)
            assert time.monotonic() - began < TIMEOUT_MS / 1000 + stage.recovery_seconds_max
        seconds = time.monotonic() - began
        stage.note(f"aborted after {seconds:.1f} s")
        assert seconds >= TIMEOUT_MS / 1000
        check_aborted(system, writer, places)
        assert committed_offset(system, group, places[0]) is None
        check_fenced(writer, topic)
        check_next(system, writer, topic, places)


def check_open(system: FaultyCluster, writer: RawTransactional, places: list[TopicPartition]) -> None:
    found = described(system, writer.name)
    assert (found.state, found.timeout_ms) == ("Ongoing", TIMEOUT_MS)
    assert (found.producer_id, found.producer_epoch) == (writer.id, writer.epoch)
    assert found.start_time_ms is not None
    assert {each for each in found.partitions if each.topic != OFFSETS_TOPIC} == set(places)
    assert {stable for stable, _ in ends(system, places).values()} == {0}
    assert committed_values(system, places) == {place: [] for place in places}


def check_aborted(system: FaultyCluster, writer: RawTransactional, places: list[TopicPartition]) -> None:
    system.wait_until(
        lambda: transaction_state(system, writer.name) == "CompleteAbort", "the transaction is aborted"
    )
    found = described(system, writer.name)
    assert not found.partitions
    assert (found.producer_id, found.producer_epoch) > (writer.id, writer.epoch)
    assert committed_values(system, places) == {places[0]: [b"after it"], places[1]: []}


def check_fenced(writer: RawTransactional, topic: Topic) -> None:
    """What the dead client had on its way, or sends when it comes back."""
    if writer.transaction_version == OLD:
        assert writer.add(topic) in FENCED
    assert writer.produce(topic, b"too late") in FENCED
    # From a newer client this looks like a repeated request: its transaction has ended, and not like that.
    refused = FENCED if writer.transaction_version == OLD else {ErrorCode.INVALID_TXN_STATE}
    assert writer.end(commit=True) in refused


def check_next(
    system: FaultyCluster, writer: RawTransactional, topic: Topic, places: list[TopicPartition]
) -> None:
    """Its successor writes."""
    writer.init(TIMEOUT_MS)
    write(writer, topic, b"successor", range(PARTITIONS))
    assert writer.end(commit=True) == 0
    wait_until_decided(system, places)
    assert committed_values(system, places) == {
        places[0]: [b"after it", b"successor"],
        places[1]: [b"successor"],
    }


def test_a_process_dies_or_hangs_in_a_transaction(system: FaultyCluster, run: Run, tmp_path: Path) -> None:
    """The same with clients as they are used."""
    use_transactions(system)
    with run() as stage:
        chance = Random(stage.seed)
        library, dies = chance.choice(list(LIBRARIES)), chance.random() < 0.5
        name = f"{stage.name}-process"
        topic, places = make_topic(stage)
        arguments = (library, system.bootstrap, name, topic.name, str(TIMEOUT_MS))
        with ZombieProcess(tmp_path, *arguments) as process:
            system.wait_until(lambda: process.sent >= 2 * PARTITIONS, f"{library} has sent some records")
            process.kill() if dies else process.stop()
            stage.note(f"{library} {'dies' if dies else 'hangs'}")
            before = time.monotonic()
            assert transaction_state(system, name) == "Ongoing"
            wait_until_decided(system, places)
            assert time.monotonic() - before < TIMEOUT_MS / 1000 + ABORT_SECONDS_MAX
            system.wait_until(lambda: transaction_state(system, name) == "CompleteAbort", "it is aborted")
            if not dies:
                process.wake()
                assert process.refusals().keys() >= {"commit"}
                wait_until_decided(system, places)
        assert committed_values(system, places) == {place: [] for place in places}
