"""A coordinator's journal on a real partition: what it writes, when that is committed, what it replays."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from barnabas.broker.journal import PORTION_BYTES, PartitionJournal
from barnabas.coordination.journal import Entry, Marker
from barnabas.coordination.step import JournalRecord, Producer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER, control_batch
from barnabas.records.validation import trusted
from barnabas.replication.partition import Partition

TOPIC = "state"
PRODUCER = Producer(7, 0)


def record(name: str) -> JournalRecord:
    return JournalRecord(name.encode(), b"value of " + name.encode())


@pytest.fixture
def partition(stage: Any) -> Partition:
    stage.create(TOPIC, cleanup_policy="compact")
    led: Partition = stage.replicas.leader(TOPIC, 0)
    return led


@pytest.fixture
def journal(stage: Any, partition: Partition) -> PartitionJournal:
    return PartitionJournal(partition, stage.clock)


def replayed(journal: PartitionJournal) -> list[Any]:
    return [each for portion in journal.replay() for each in portion]


def write_marker(partition: Partition, kind: int, producer: Producer = PRODUCER) -> None:
    batch = control_batch(kind, 0, producer_id=producer.id, producer_epoch=producer.epoch, timestamp=1)
    partition.append(trusted(batch), from_client=False)


def refusal(journal: PartitionJournal, *records: JournalRecord) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        journal.append(records or [record("a")], None)
    return caught.value.code


# ---- appending and replaying


def test_what_is_appended_is_replayed_in_order(journal: PartitionJournal) -> None:
    gone = JournalRecord(b"b", None)
    assert journal.append([record("a"), record("b")], None) == 2
    assert journal.append([gone], None) == 3
    assert replayed(journal) == [Entry(record("a"), None), Entry(record("b"), None), Entry(gone, None)]


def test_records_of_one_step_are_one_batch(journal: PartitionJournal, partition: Partition) -> None:
    journal.append([record("a"), record("b"), record("c")], None)
    assert partition.log.read(1, 10_000, upper_offset=3, at_least_one=True).size == partition.log.size


def test_records_of_a_transaction_come_back_with_their_producer_and_its_end(
    journal: PartitionJournal, partition: Partition
) -> None:
    other = Producer(8, 3)
    journal.append([record("a")], PRODUCER)
    journal.append([record("b")], other)
    journal.append([record("c")], None)
    write_marker(partition, COMMIT_MARKER)
    write_marker(partition, ABORT_MARKER, other)
    assert replayed(journal) == [
        Entry(record("a"), PRODUCER),
        Entry(record("b"), other),
        Entry(record("c"), None),
        Marker(PRODUCER, True),
        Marker(other, False),
    ]


def test_a_long_journal_is_replayed_in_portions(journal: PartitionJournal) -> None:
    large = [JournalRecord(str(number).encode(), bytes(PORTION_BYTES // 4)) for number in range(9)]
    for each in large:
        journal.append([each], None)
    portions = list(journal.replay())
    assert len(portions) > 2
    assert [entry for portion in portions for entry in portion] == [Entry(each, None) for each in large]


def test_a_replay_ends_where_the_log_ended_when_it_began(journal: PartitionJournal) -> None:
    journal.append([record("a")], None)
    portions = journal.replay()
    assert next(portions) == [Entry(record("a"), None)]
    journal.append([record("b")], None)
    assert list(portions) == []


def test_records_below_the_log_start_are_not_replayed(
    journal: PartitionJournal, partition: Partition
) -> None:
    journal.append([record("a"), record("b"), record("c")], None)
    partition.delete_records_before(1)
    assert replayed(journal) == [Entry(record("b"), None), Entry(record("c"), None)]


# ---- refusals: the codes are those that clients of a coordinator know


def test_a_batch_above_the_limit_of_the_topic_is_refused_whole(stage: Any) -> None:
    stage.create(TOPIC, max_message_bytes="1000")
    partition = stage.replicas.leader(TOPIC, 0)
    journal = PartitionJournal(partition, stage.clock)
    large = JournalRecord(b"large", bytes(2000))
    assert refusal(journal, record("a"), large) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert partition.log.log_end_offset == 0


def test_too_few_replicas_in_sync_mean_that_the_coordinator_is_not_available(stage: Any) -> None:
    stage.create(TOPIC, min_insync_replicas="2")
    partition = stage.replicas.leader(TOPIC, 0)
    partition.replicas = (1, 2)
    assert refusal(PartitionJournal(partition, stage.clock)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert partition.log.log_end_offset == 0


def test_nothing_is_written_on_a_full_disk_and_clients_look_for_another_coordinator(
    stage: Any, journal: PartitionJournal
) -> None:
    journal.append([record("a")], None)
    stage.disk.fail("pwrite", errno.ENOSPC)
    assert refusal(journal, record("b")) == ErrorCode.NOT_COORDINATOR
    stage.disk.heal()
    journal.append([record("c")], None)
    assert replayed(journal) == [Entry(record("a"), None), Entry(record("c"), None)]


def test_a_journal_writes_nothing_after_its_leader_epoch(
    stage: Any, journal: PartitionJournal, partition: Partition
) -> None:
    stage.place(partition, leader_epoch=partition.leader_epoch + 1)
    assert refusal(journal) == ErrorCode.NOT_COORDINATOR
    stage.place(partition, leader=2)
    assert refusal(PartitionJournal(partition, stage.clock)) == ErrorCode.NOT_COORDINATOR
    assert partition.log.log_end_offset == 0


# ---- committing


class Outcomes(list[ErrorCode]):
    """What `when_committed` reported, in order; NONE for a success."""

    def add(self, error: KafkaError | None) -> None:
        self.append(ErrorCode.NONE if error is None else error.code)


def test_with_one_replica_an_append_is_committed_at_once(journal: PartitionJournal) -> None:
    outcomes = Outcomes()
    journal.when_committed(journal.append([record("a")], None), outcomes.add)
    assert outcomes == [ErrorCode.NONE]


def test_an_append_is_committed_when_the_replicas_in_sync_have_it(
    stage: Any, journal: PartitionJournal, partition: Partition
) -> None:
    stage.place(partition, isr=(1, 2))
    outcomes = Outcomes()
    journal.when_committed(0, outcomes.add)
    assert outcomes == [ErrorCode.NONE], "nothing is missing"
    journal.when_committed(journal.append([record("a")], None), outcomes.add)
    assert outcomes == [ErrorCode.NONE]
    stage.place(partition, isr=(1,))
    assert outcomes == [ErrorCode.NONE, ErrorCode.NONE]


def test_a_waiting_commit_fails_when_leadership_moves(
    stage: Any, journal: PartitionJournal, partition: Partition
) -> None:
    stage.place(partition, isr=(1, 2))
    outcomes = Outcomes()
    journal.when_committed(journal.append([record("a")], None), outcomes.add)
    stage.place(partition, isr=(1, 2), leader=2, leader_epoch=partition.leader_epoch + 1)
    assert outcomes == [ErrorCode.NOT_COORDINATOR]
