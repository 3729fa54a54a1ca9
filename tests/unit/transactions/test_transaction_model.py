"""A transaction is all or nothing, whatever is lost, repeated, late or killed.

Producers fight for one transactional id and write to partitions that obey the rules of the log. Between any
two steps messages get lost or come again, appends of the coordinator fail, and coordinators die and are
replaced by others that know the journal only."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.coordination.step import JournalRecord
from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.transactions.machine import TransactionMachine
from barnabas.transactions.metadata import NO_PRODUCER_ID, Transaction
from barnabas.transactions.records import encode
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.states import AT_REST, PREPARED, State
from barnabas.transactions.steps import MarkersToWrite, TransactionStep, timeout_key
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

PARTITIONS = [TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("c", 0)]

# The first client does most of the work, so that some of it gets done.
CLIENT_NUMBERS = st.sampled_from([0, 0, 0, 1])
ONE_IN_FOUR = st.sampled_from([False, False, False, True])


@dataclass(eq=False)
class Work:
    """What a client does in one transaction, and the outcome that it got as an answer."""

    outcomes: list[bool | None] = field(default_factory=list)
    answered: bool | None = None
    asked_to_commit: bool = False


@dataclass(eq=False)
class Write:
    """One record: whose work it is, and which transaction it was sent in."""

    work: Work
    place: int
    partition: TopicPartition
    producer: tuple[int, int]

    def end(self, is_commit: bool) -> None:
        assert self.work.outcomes[self.place] is None, "a record cannot end twice"
        self.work.outcomes[self.place] = is_commit


@dataclass
class Client:
    producer: tuple[int, int] | None = None
    work: Work = field(default_factory=Work)
    # How it ends, from the first request until the answer; it does nothing else before that.
    wish: bool | None = None


class Partition:
    """The rules of a partition's log for producers and markers."""

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.coordinators: dict[int, int] = {}
        self.open: dict[int, list[Write]] = {}

    def append(self, write: Write) -> bool:
        producer_id, epoch = write.producer
        if epoch < self.epochs.get(producer_id, -1):
            return False
        self.epochs[producer_id] = epoch
        self.open.setdefault(producer_id, []).append(write)
        return True

    def mark(self, markers: MarkersToWrite) -> ErrorCode:
        producer_id, epoch = markers.producer_id, markers.producer_epoch
        known = self.epochs.get(producer_id, -1)
        is_repeat = epoch == known and producer_id not in self.open
        is_old = epoch <= known if markers.transaction_version >= 2 else epoch < known
        if is_old and not is_repeat:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if markers.coordinator_epoch < self.coordinators.get(producer_id, -1):
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        self.epochs[producer_id] = epoch
        self.coordinators[producer_id] = markers.coordinator_epoch
        for write in self.open.pop(producer_id, []):
            write.end(markers.is_commit)
        return ErrorCode.NONE


class TransactionModel(RuleBasedStateMachine):
    client_version = 2

    def __init__(self) -> None:
        super().__init__()
        self.settings = TransactionSettings(transaction_version=self.client_version)
        self.journal: list[JournalRecord] = []
        self.partitions = {partition: Partition() for partition in PARTITIONS}
        self.clients = [Client(), Client()]
        self.works: list[Work] = []
        self.to_write: list[MarkersToWrite] = []
        self.written: list[MarkersToWrite] = []
        self.sent_writes: list[Write] = []
        self.sent_ends: list[EndTxnRequest] = []
        self.now_ms = 1_000
        self.next_producer_id = 100
        self.append_fails = False
        self.machine = self.coordinator(1)

    def coordinator(self, epoch: int) -> TransactionMachine:
        return TransactionMachine(self.settings, self.fresh_producer_id, epoch)

    def fresh_producer_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id

    def run(self, step: TransactionStep[Any]) -> Any:
        self.now_ms += 1
        if step.records and self.append_fails:
            self.append_fails = False
            return None
        for record in step.records:
            before = self.machine.transactions.get("tx")
            self.machine.apply(record, None)
            self.check_move(before, self.machine.transactions["tx"])
        self.journal += step.records
        self.to_write += step.markers
        return step.reply

    def check_move(self, before: Transaction | None, after: Transaction) -> None:
        """What is decided stays decided."""
        if before is not None and before.state in PREPARED:
            assert after.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
            assert after.is_commit == before.is_commit

    # -- clients

    @initialize(epoch=st.sampled_from([None, 0, 32763, 32764, 32765, 32766]))
    def start_somewhere(self, epoch: int | None) -> None:
        if epoch is not None:
            record = encode("tx", Transaction(50, 60_000, 1, epoch, previous_producer_id=50), 2)
            self.journal.append(record)
            self.machine.apply(record, None)

    @rule(number=CLIENT_NUMBERS, goes_on=st.booleans(), takes_over=ONE_IN_FOUR)
    def init(self, number: int, goes_on: bool, takes_over: bool) -> None:
        client = self.clients[number]
        if client.producer is not None and not takes_over:
            return
        named = client.producer if goes_on and client.producer else (-1, -1)
        request = InitProducerIdRequest(
            transactional_id="tx",
            transaction_timeout_ms=60_000,
            producer_id=named[0],
            producer_epoch=named[1],
        )
        reply = self.run(self.machine.init_producer_id(request, 5, self.now_ms))
        if reply is not None and reply.error_code == ErrorCode.NONE:
            client.producer = reply.producer_id, reply.producer_epoch
            self.begin_work(client)

    def begin_work(self, client: Client) -> None:
        client.work = Work()
        client.wish = None
        self.works.append(client.work)

    @rule(number=CLIENT_NUMBERS, places=st.sets(st.sampled_from(PARTITIONS), min_size=1), late=ONE_IN_FOUR)
    def write(self, number: int, places: set[TopicPartition], late: bool) -> None:
        client = self.clients[number]
        if client.producer is None or client.wish is not None:
            return
        for partition in sorted(places):
            write = Write(client.work, len(client.work.outcomes), partition, client.producer)
            if late:
                self.sent_writes.append(write)
            else:
                self.deliver_write(write)

    def deliver_write(self, write: Write) -> bool:
        """Add the partition (or have it added and then verify) and append, as the leader does."""
        version = 4 if self.client_version == 2 else 3
        if self.add(write, version, verify_only=False) != ErrorCode.NONE:
            return False
        if self.add(write, 4, verify_only=True) != ErrorCode.NONE:
            return False
        write.place = len(write.work.outcomes)
        if not self.partitions[write.partition].append(write):
            return False
        write.work.outcomes.append(None)
        return True

    def add(self, write: Write, version: int, *, verify_only: bool) -> int:
        request = AddPartitionsToTxnTransaction(
            transactional_id="tx",
            producer_id=write.producer[0],
            producer_epoch=write.producer[1],
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=write.partition.topic, partitions=[0])],
        )
        reply = self.run(self.machine.add_partitions(request, version, self.now_ms))
        if reply is None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        code: int = reply.topic_results[0].results_by_partition[0].partition_error_code
        return code

    @rule(number=CLIENT_NUMBERS, commit=st.booleans(), answer_is_lost=ONE_IN_FOUR)
    def end(self, number: int, commit: bool, answer_is_lost: bool) -> None:
        client = self.clients[number]
        if client.producer is None:
            return
        client.wish = commit if client.wish is None else client.wish
        request = EndTxnRequest(
            transactional_id="tx",
            producer_id=client.producer[0],
            producer_epoch=client.producer[1],
            committed=client.wish,
        )
        client.work.asked_to_commit |= client.wish
        self.sent_ends.append(request)
        reply = self.deliver_end(request)
        if reply is None or answer_is_lost or reply.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
            return
        if reply.error_code != ErrorCode.NONE:
            # A transaction that could not commit is aborted next; one that was fenced starts over.
            client.wish = False if self.client_version == 2 else None
            return
        client.work.answered = client.wish
        if self.client_version == 2:
            client.producer = reply.producer_id, reply.producer_epoch
        self.begin_work(client)

    def deliver_end(self, request: EndTxnRequest) -> Any:
        version = 5 if self.client_version == 2 else 4
        return self.run(self.machine.end_txn(request, version, self.now_ms))

    @rule(
        number=CLIENT_NUMBERS, places=st.sets(st.sampled_from(PARTITIONS), min_size=1), commit=st.booleans()
    )
    def whole_transaction(self, number: int, places: set[TopicPartition], commit: bool) -> None:
        """Without it, little would come to an end between the troubles."""
        self.write(number, places, False)
        self.end(number, commit, False)
        self.write_all_markers()

    # -- markers

    def write_all_markers(self) -> None:
        while self.to_write:
            markers = self.to_write.pop()
            self.written.append(markers)
            self.report(
                markers, {place: self.partitions[place].mark(markers) for place in markers.partitions}
            )

    @rule(data=st.data())
    def write_markers(self, data: st.DataObject) -> None:
        if not self.to_write:
            return
        markers = self.to_write.pop(data.draw(st.integers(0, len(self.to_write) - 1)))
        everybody = st.just(markers.partitions)
        reached = data.draw(everybody | st.frozensets(st.sampled_from(sorted(markers.partitions))))
        self.written.append(markers)
        results = {
            partition: self.partitions[partition].mark(markers) if partition in reached else failure
            for partition, failure in dict.fromkeys(
                markers.partitions, ErrorCode.NOT_LEADER_OR_FOLLOWER
            ).items()
        }
        self.report(markers, results)

    def report(self, markers: MarkersToWrite, results: dict[TopicPartition, ErrorCode]) -> None:
        """The caller repeats what could not be appended, and what the reply asks for."""
        failing = self.append_fails
        again = self.run(self.machine.markers_written(markers, results, self.now_ms))
        if failing and not self.append_fails:
            again = self.run(self.machine.markers_written(markers, {}, self.now_ms))
        if again is not None:
            self.to_write.append(again)

    # -- trouble

    @rule()
    def let_the_next_append_fail(self) -> None:
        self.append_fails = True

    @rule()
    def kill_the_coordinator(self) -> None:
        self.append_fails = False
        self.machine = self.coordinator(self.machine.coordinator_epoch + 1)
        for record in self.journal:
            self.machine.apply(record, None)
        # Markers of the old coordinator may still arrive.
        self.run(self.machine.loaded(self.now_ms))

    @rule()
    def let_the_time_run_out(self) -> None:
        current = self.machine.transactions.get("tx")
        if current is not None and current.state is State.ONGOING:
            self.run(self.machine.lapse(timeout_key("tx", current), self.now_ms))

    # -- rules of the whole

    @invariant()
    def a_replay_leads_to_the_same_state(self) -> None:
        for journal in (self.journal, self.journal[-1:]):
            other = self.coordinator(99)
            for record in journal:
                other.apply(record, None)
            assert other.transactions == self.machine.transactions

    @invariant()
    def markers_agree_with_the_decision(self) -> None:
        current = self.machine.transactions.get("tx")
        for markers in self.to_write:
            producer = markers.producer_id, markers.producer_epoch
            if current is not None and current.is_prepared and self.client_version == 2:
                assert producer != (current.producer_id, current.epoch) or (
                    markers.is_commit == current.is_commit
                )

    @invariant()
    def nothing_is_open_at_rest(self) -> None:
        current = self.machine.transactions.get("tx")
        if current is not None and current.state in AT_REST:
            for partition in self.partitions.values():
                assert not partition.open, "a transaction hangs"

    @invariant()
    def a_transaction_is_all_or_nothing(self) -> None:
        for work in self.works:
            ended = {outcome for outcome in work.outcomes if outcome is not None}
            assert len(ended) <= 1
            if work.answered is not None:
                assert ended <= {work.answered}
            assert work.asked_to_commit or True not in ended, "somebody else committed it"

    def teardown(self) -> None:
        self.append_fails = False
        self.let_the_time_run_out()
        self.kill_the_coordinator()
        self.write_all_markers()
        current = self.machine.transactions.get("tx")
        assert current is None or (current.state in AT_REST and current.next_producer_id == NO_PRODUCER_ID)
        self.nothing_is_open_at_rest()
        for work in self.works:
            assert None not in work.outcomes
        self.a_transaction_is_all_or_nothing()


class Version1Model(TransactionModel):
    """An old client's repeat looks like its next end, so nothing comes late here."""

    client_version = 1


class Version2Model(TransactionModel):
    """Whatever comes late names an epoch that is over, and can touch nothing that began after it."""

    @rule(data=st.data())
    def a_late_write_arrives(self, data: st.DataObject) -> None:
        if not self.sent_writes:
            return
        write = self.sent_writes.pop(data.draw(st.integers(0, len(self.sent_writes) - 1)))
        if self.deliver_write(write):
            current = self.machine.transactions["tx"]
            assert (current.producer_id, current.epoch) == write.producer
            assert write.work.answered is None, "its transaction was over"

    @rule(data=st.data())
    def a_late_end_arrives(self, data: st.DataObject) -> None:
        if not self.sent_ends:
            return
        request = data.draw(st.sampled_from(self.sent_ends))
        before = self.machine.transactions.get("tx")
        self.deliver_end(request)
        after = self.machine.transactions.get("tx")
        if before is not None and (request.producer_id, request.producer_epoch) != (
            before.producer_id,
            before.epoch,
        ):
            assert after == before

    @rule(data=st.data())
    def late_markers_arrive(self, data: st.DataObject) -> None:
        """A partition accepts them or not; the coordinator has forgotten the transaction."""
        if not self.written:
            return
        markers = data.draw(st.sampled_from(self.written))
        partition = data.draw(st.sampled_from(sorted(markers.partitions)))
        self.report(markers, {partition: self.partitions[partition].mark(markers)})


LIMITS = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestVersion1 = Version1Model.TestCase
TestVersion1.settings = LIMITS
TestVersion2 = Version2Model.TestCase
TestVersion2.settings = LIMITS
