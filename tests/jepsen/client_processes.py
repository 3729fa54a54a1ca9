"""The processes of a workload: each has a client, does one operation after the other, and records them.

What they do is random, from the seed of the run and their number. From time to time a client ends without a
word, and a new one takes over."""

from __future__ import annotations

import abc
import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from tests.jepsen.clients import library
from tests.jepsen.clients.base import (
    FAIL,
    OK,
    UNKNOWN,
    Client,
    MicroOperation,
    OperationError,
    Reader,
    Record,
    Sent,
    TransactionalWriter,
    Writer,
)
from tests.jepsen.history import Recorder
from tests.jepsen.plans import DriverPlan, ProcessPlan, Topic

from barnabas.ids import TopicPartition

# Values of the process with number n begin at n times this.
VALUES_PER_PROCESS = 10**9
POLL_SECONDS = 0.25
RETRY_SECONDS = 0.3
CRASH_AFTER_ERROR_SHARE = 0.5
ABORTED_SHARE = 0.2
CRASH_BEFORE_COMMIT_SHARE = 0.02
COMMIT_SHARE, COMMITTED_SHARE = 0.4, 0.05


@dataclass
class Surroundings:
    """What the processes of one driver share."""

    plan: DriverPlan
    recorder: Recorder
    stopping: threading.Event

    def __post_init__(self) -> None:
        # How many operations of each process have succeeded.
        self.done: dict[int, int] = {process.number: 0 for process in self.plan.processes}


class Process(abc.ABC):
    def __init__(self, plan: ProcessPlan, surroundings: Surroundings) -> None:
        self.plan = plan
        self.number = plan.number
        self.surroundings = surroundings
        self.chance = Random(f"{surroundings.plan.seed}-{plan.number}")
        self.library = library(plan.library)
        self.client_id = f"{plan.kind}-{plan.number}"
        self._values = count(plan.number * VALUES_PER_PROCESS)
        self._is_open = False

    # ---- one life after the other

    def run(self) -> None:
        stopping = self.surroundings.stopping
        while not stopping.is_set():
            if not self._is_open and not self._try_to_open():
                stopping.wait(RETRY_SECONDS)
                continue
            is_good = self.step()
            crash_share = self.plan.crash_share if is_good else CRASH_AFTER_ERROR_SHARE
            if self._is_open and self.chance.random() < crash_share:
                self.crash()
            stopping.wait(min(self.chance.expovariate(self.plan.rate), 10 / self.plan.rate))
        if self._is_open:
            for client in self.take_clients():
                client.close()

    def _try_to_open(self) -> bool:
        try:
            self.open()
        except OperationError:
            self._abandon()
            return False
        self._is_open = True
        return True

    def crash(self) -> None:
        """The client is gone without a word."""
        self.surroundings.recorder.crash(self.number)
        self._abandon()

    def _abandon(self) -> None:
        self._is_open = False
        for client in self.take_clients():
            client.abandon()

    @abc.abstractmethod
    def open(self) -> None:
        """Make the clients."""

    @abc.abstractmethod
    def take_clients(self) -> list[Client]:
        """Those that are open. From now on they belong to the caller."""

    @abc.abstractmethod
    def step(self) -> bool:
        """One operation; whether it went well."""

    # ---- recording

    def invoke(self, function: str, value: Any, commit: bool = True) -> None:
        self.surroundings.recorder.invoke(self.number, function, value, commit)

    def complete(self, outcome: str, value: Any = None, error: object = None) -> bool:
        reason = None if error is None else str(error)
        self.surroundings.recorder.complete(self.number, outcome, value, reason)
        self.surroundings.done[self.number] += outcome == OK
        return outcome == OK

    def do(self, function: str, value: Any, work: Callable[[], Any]) -> Any:
        """One operation as it is recorded; None if it did not succeed."""
        self.invoke(function, value)
        try:
            result = work()
        except OperationError as error:
            self.complete(error.outcome, None, error)
            if error.is_broken:
                self.crash()
            return None
        self.complete(OK, result)
        return True if result is None else result

    # ---- what is written

    def records(self, many: int, topic: Topic) -> list[Record]:
        """New values, for the same partition or for several."""
        partitions = topic.all()
        if self.chance.random() < 0.5:
            partitions = [self.chance.choice(partitions)]
        return [(self.chance.choice(partitions), next(self._values)) for _ in range(many)]


def micro_sends(records: Sequence[Record]) -> list[MicroOperation]:
    return [["send", str(partition), value] for partition, value in records]


def outcome_of(sent: Sequence[Sent]) -> str:
    """That of an operation with these sends."""
    outcomes = {each.outcome for each in sent}
    if UNKNOWN in outcomes:
        return UNKNOWN
    return FAIL if outcomes == {FAIL} else OK


def micro_sent(records: Sequence[Record], sent: Sequence[Sent], outcome: str) -> list[MicroOperation]:
    """As in the completion of an operation with this outcome."""
    return [
        ["send", str(partition), [each.offset, value], *([each.outcome] if each.outcome != outcome else [])]
        for (partition, value), each in zip(records, sent, strict=True)
    ]


def first_error(sent: Sequence[Sent]) -> str | None:
    return next((each.error for each in sent if each.error is not None), None)


class SendingProcess(Process):
    """Sends one record at a time."""

    in_flight_max = 1
    writer: Writer | None = None

    def open(self) -> None:
        bootstrap = self.surroundings.plan.bootstrap
        self.writer = self.library.writer(bootstrap, self.client_id, in_flight=self.in_flight_max > 1)

    def take_clients(self) -> list[Client]:
        taken, self.writer = self.writer, None
        return [] if taken is None else [taken]

    def step(self) -> bool:
        assert self.writer is not None
        records = self.records(self.chance.randint(1, self.in_flight_max), self.surroundings.plan.events)
        self.invoke("send", micro_sends(records))
        sent = self.writer.send(records)
        outcome = outcome_of(sent)
        return self.complete(outcome, micro_sent(records, sent, outcome), first_error(sent))


class PipeliningProcess(SendingProcess):
    """Sends several records at a time, without waiting in between."""

    in_flight_max = 8


class TransactionProcess(Process):
    """Writes to several partitions in transactions, of which it aborts some."""

    writer: TransactionalWriter | None = None

    def open(self) -> None:
        assert self.plan.transactional_id is not None
        bootstrap = self.surroundings.plan.bootstrap
        self.writer = self.library.transactional_writer(bootstrap, self.client_id, self.plan.transactional_id)

    def take_clients(self) -> list[Client]:
        taken, self.writer = self.writer, None
        return [] if taken is None else [taken]

    def step(self) -> bool:
        records = self.records(self.chance.randint(1, 5), self.surroundings.plan.events)
        return self.transact(records)

    def transact(
        self,
        records: Sequence[Record],
        before: Sequence[MicroOperation] = (),
        after: Sequence[MicroOperation] = (),
        send_offsets: Callable[[], None] = lambda: None,
    ) -> bool:
        """A transaction that is recorded with what comes `before` and `after` its sends. Returns whether it
        ended as intended; `is_committed` says how."""
        assert self.writer is not None
        writer = self.writer
        is_commit = self.chance.random() >= ABORTED_SHARE
        is_killed = self.chance.random() < CRASH_BEFORE_COMMIT_SHARE
        sent: list[Sent] = []

        def value(outcome: str) -> list[MicroOperation]:
            sends = micro_sent(records, sent, outcome) if sent else micro_sends(records)
            # The outcome of a transaction is that of all its sends.
            return [*before, *(each[:3] for each in sends), *after]

        self.is_committed = False
        self.invoke("txn", value(OK), is_commit)
        try:
            writer.begin()
            sent = writer.send(records)
            if any(each.outcome != OK for each in sent):
                raise OperationError(FAIL, first_error(sent))
            send_offsets()
        except OperationError as error:
            # Nobody has asked for the commit, so there will be none.
            self.complete(FAIL, value(FAIL), error)
            self._recover(error)
            return False
        if is_killed:
            self.complete(FAIL, value(FAIL), "the client ends before the commit")
            self.crash()
            return False
        return self._end(writer, is_commit, value)

    def _end(
        self, writer: TransactionalWriter, is_commit: bool, value: Callable[[str], list[MicroOperation]]
    ) -> bool:
        try:
            writer.commit() if is_commit else writer.abort()
        except OperationError as error:
            self.complete(error.outcome, value(error.outcome), error)
            if is_commit:
                self._recover(error)
            else:
                self.crash()
            return False
        self.is_committed = is_commit
        return self.complete(OK, value(OK))

    def _recover(self, error: OperationError) -> None:
        """After a transaction that did not come to its end."""
        if self.writer is None:
            return
        if error.is_broken:
            self.crash()
            return
        try:
            self.writer.abort()
        except OperationError:
            self.crash()


class ReadingProcess(Process):
    """Reads all partitions, by assignment."""

    reader: Reader | None = None

    def open(self) -> None:
        self.reader = self.library.reader(self.surroundings.plan.bootstrap, self.client_id, self.plan.group)
        self.begin_reading(self.reader)

    def begin_reading(self, reader: Reader) -> None:
        partitions = self.surroundings.plan.events.all()
        self.invoke("assign", [str(each) for each in partitions])
        self._begun(lambda: reader.assign(partitions))

    def _begun(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OperationError as error:
            self.complete(error.outcome, None, error)
            raise
        self.complete(OK)

    def take_clients(self) -> list[Client]:
        taken, self.reader = self.reader, None
        return [] if taken is None else [taken]

    def step(self) -> bool:
        assert self.reader is not None
        reader = self.reader
        return self.do("poll", [["poll"]], lambda: reader.poll(POLL_SECONDS)) is not None


class GroupProcess(ReadingProcess):
    """Reads as a member of a group, and commits what it has read."""

    def begin_reading(self, reader: Reader) -> None:
        topic = self.surroundings.plan.events.name
        self.positions: dict[TopicPartition, int] = {}
        self.invoke("subscribe", [topic])
        self._begun(lambda: reader.subscribe([topic]))

    def step(self) -> bool:
        assert self.reader is not None and self.plan.group is not None
        reader, group = self.reader, self.plan.group.id
        polled = self.do("poll", [["poll"]], lambda: reader.poll(POLL_SECONDS))
        if polled is None:
            return False
        follow(self.positions, polled)
        if self.positions and self.chance.random() < COMMIT_SHARE:
            offsets = dict(self.positions)
            micro = [["commit", group, {str(each): offset for each, offset in offsets.items()}]]
            if self.do("commit", micro, lambda: reader.commit(offsets)) is None:
                return False
            self.positions.clear()
        if self.chance.random() < COMMITTED_SHARE:
            partitions = self.surroundings.plan.events.all()
            return self.find_committed(reader, group, partitions) is not None
        return True

    def find_committed(
        self, reader: Reader, group: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int | None] | None:
        found: dict[TopicPartition, int | None] = {}

        def find() -> list[MicroOperation]:
            found.update(reader.committed(partitions))
            return [["committed", group, {str(each): offset for each, offset in found.items()}]]

        return None if self.do("committed", [["committed", group]], find) is None else found


def follow(positions: dict[TopicPartition, int], polled: Sequence[MicroOperation]) -> None:
    """Where a reader is after a poll: only in partitions that it has read since it got them."""
    for name, found in polled:
        if name == "rebalance":
            for key in found:
                positions.pop(partition_of(key), None)
        else:
            for key, pairs in found.items():
                positions[partition_of(key)] = pairs[-1][0] + 1


def partition_of(key: str) -> TopicPartition:
    topic, _, number = key.rpartition("-")
    return TopicPartition(topic, int(number))


class CopyingProcess(TransactionProcess, GroupProcess):
    """Copies the topic to another one, in transactions that also commit the offsets of its group."""

    def open(self) -> None:
        # First the writer: it ends what its predecessor has left open, so that the offsets are final.
        TransactionProcess.open(self)
        GroupProcess.open(self)

    def take_clients(self) -> list[Client]:
        return TransactionProcess.take_clients(self) + GroupProcess.take_clients(self)

    def step(self) -> bool:
        assert self.reader is not None and self.plan.group is not None
        reader, group = self.reader, self.plan.group.id
        try:
            polled = reader.poll(POLL_SECONDS)
        except OperationError as error:
            self.invoke("poll", [["poll"]])
            return self.complete(error.outcome, None, error)
        offsets: dict[TopicPartition, int] = {}
        follow(offsets, polled)
        if not offsets or is_interrupted(polled):
            self.invoke("poll", [["poll"]])
            self.complete(OK, polled)
            return not offsets or self._rewind(reader, group)
        micro = [["commit", group, {str(each): offset for each, offset in offsets.items()}]]
        copies = self.records(_count(polled), self.surroundings.plan.copies)
        assert self.writer is not None
        writer = self.writer
        is_good = self.transact(copies, polled, micro, lambda: writer.send_offsets(reader, offsets))
        if self.reader is not None and not self.is_committed:
            return self._rewind(reader, group) and is_good
        return is_good

    def _rewind(self, reader: Reader, group: str) -> bool:
        """Go back to what the group has committed: what was read since then was not processed."""
        with contextlib.suppress(OperationError):
            assigned = reader.assignment()
            if not assigned:
                return True
            found = self.find_committed(reader, group, assigned)
            if found is not None:
                offsets = {each: offset or 0 for each, offset in found.items()}
                places = {str(each): offset for each, offset in offsets.items()}
                if self.do("seek", places, lambda: reader.seek(offsets)) is not None:
                    return True
        if self.reader is not None:
            # Where it is now is unknown; a new one begins where the group is.
            self.crash()
        return False


def is_interrupted(polled: Sequence[MicroOperation]) -> bool:
    """Whether records were read and then partitions moved: some of the records belong to others now."""
    names = [name for name, found in polled if found or name == "rebalance"]
    return "poll" in names and "rebalance" in names[names.index("poll") :]


def _count(polled: Sequence[MicroOperation]) -> int:
    return sum(len(pairs) for name, found in polled if name == "poll" for pairs in found.values())


KINDS: dict[str, type[Process]] = {
    "writer": SendingProcess,
    "pipelining_writer": PipeliningProcess,
    "transactional_writer": TransactionProcess,
    "reader": ReadingProcess,
    "group_member": GroupProcess,
    "copier": CopyingProcess,
}


def processes_of(surroundings: Surroundings) -> Iterator[Process]:
    for plan in surroundings.plan.processes:
        yield KINDS[plan.kind](plan, surroundings)
