"""What a partition remembers about each producer: its last batches and its open transaction. No I/O.

A client's batch is checked in this order: a repeat of one of the last five batches is answered with the
offsets of that batch; the epoch must not be older than the known one; the sequence must follow the last one
(or be 0 in a new epoch); while a transaction is open, a batch outside it is refused. An unknown producer may
begin with any sequence."""

from collections import deque
from heapq import nsmallest
from typing import NamedTuple, Protocol

from barnabas.errors import ErrorCode, KafkaError
from barnabas.log.refused_batches import RefusedBatches, SequencedBatch
from barnabas.records.batch import TRANSACTIONAL_FLAG, last_sequence
from barnabas.records.builder import ABORT_MARKER, Marker

BATCHES_KEPT = 5
# A partition remembers at most this many producers; an entry takes about half a kilobyte. A client may invent
# a producer id for each batch, and producer.id.expiration.ms is a day. Producers that have not written for
# the longest time are forgotten first, so 18,000 others must write to one partition before a producer loses
# its protection against duplicates.
PRODUCERS_MAX = 20_000
SEQUENCE_MAX = 2**31 - 1
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1


class ProducerFields(SequencedBatch, Protocol):
    """The part of a batch that concerns its producer; a checked batch and a batch header both have it."""

    @property
    def attributes(self) -> int: ...
    @property
    def last_offset_delta(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...


class BatchMetadata(NamedTuple):
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + SEQUENCE_MAX + 1

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class ProducerEntry:
    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = -1,
        transaction_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.transaction_first_offset = transaction_first_offset
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_KEPT)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The last offset of its last batch; -1 if it has written only markers."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def repeated(self, batch: ProducerFields) -> BatchMetadata | None:
        """The batch that this one repeats, if it is one of the last ones of the present epoch."""
        if batch.producer_epoch != self.epoch:
            return None
        sequence = last_sequence(batch.base_sequence, batch.last_offset_delta)
        for known in self.batches:
            if known.last_sequence == sequence and known.first_sequence == batch.base_sequence:
                return known
        return None

    def move_to_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch


class Verification:
    """A check with a transaction coordinator whether a batch belongs to an open transaction.

    Other batches are appended while the coordinator is asked. A marker among them ends the transaction, and
    with it the check: its result says nothing about what comes after the marker. Use it as a context, and
    append only while it `is_valid`."""

    __slots__ = ("_producer_id", "_table")

    def __init__(self, table: "ProducerTable", producer_id: int) -> None:
        self._table = table
        self._producer_id = producer_id

    @property
    def is_valid(self) -> bool:
        return self in self._table.verifying.get(self._producer_id, ())

    def __enter__(self) -> "Verification":
        self._table.verifying.setdefault(self._producer_id, set()).add(self)
        return self

    def __exit__(self, *_: object) -> None:
        others = self._table.verifying.get(self._producer_id)
        if others is not None:
            others.discard(self)
            if not others:
                del self._table.verifying[self._producer_id]


class ProducerTable:
    """The producers of one partition and its undecided transactions."""

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        # First offset -> producer id of open transactions. Newer transactions have higher first offsets, so
        # the first key is the lowest.
        self.ongoing: dict[int, int] = {}
        # First offset -> offset of the marker, of ended transactions whose marker is not replicated yet.
        self.unreplicated: dict[int, int] = {}
        # Producer id -> the checks of its first batch of a transaction that are under way: see Verification.
        self.verifying: dict[int, set[Verification]] = {}
        self.refused = RefusedBatches()
        self._entries_max = PRODUCERS_MAX

    def check_batch(self, batch: ProducerFields, from_client: bool) -> BatchMetadata | None:
        """Raise if the batch may not be appended; the earlier batch if this is a repeat of it; None if it
        may. Coordinators send no sequence numbers, so only a batch from a client can be a repeat."""
        entry = self.entries.get(batch.producer_id)
        if entry is None:
            if from_client and self.refused:
                self.refused.check(batch)
            return None
        epoch = batch.producer_epoch
        if from_client:
            sequence = batch.base_sequence
            if epoch != entry.epoch or sequence != (entry.last_sequence + 1) & SEQUENCE_MAX:
                known = entry.repeated(batch)
                if known is not None:
                    return known
                self._check_epoch(entry, epoch)
                if self.refused:
                    self.refused.check(batch)
                self._check_sequence(entry, batch)
        else:
            self._check_epoch(entry, epoch)
        if entry.transaction_first_offset >= 0 and not batch.attributes & TRANSACTIONAL_FLAG:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {batch.producer_id} has an open transaction and sent a batch outside it",
            )
        return None

    def refuse(self, batch: SequencedBatch, code: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> None:
        """The batch could not be written, for a reason that may go away. The producer sends it again."""
        self.refused.add(batch, code)

    def record_batch(self, batch: ProducerFields, first_offset: int) -> None:
        """A data batch was appended at `first_offset`."""
        producer_id, epoch = batch.producer_id, batch.producer_epoch
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self._add(ProducerEntry(producer_id, epoch))
        elif entry.epoch != epoch:
            entry.move_to_epoch(epoch)
        delta, timestamp = batch.last_offset_delta, batch.max_timestamp
        sequence = last_sequence(batch.base_sequence, delta)
        if self.refused:
            self.refused.written(producer_id, epoch, (sequence + 1) & SEQUENCE_MAX)
        entry.batches.append(BatchMetadata(sequence, first_offset + delta, delta, timestamp))
        entry.last_timestamp = timestamp
        if batch.attributes & TRANSACTIONAL_FLAG and entry.transaction_first_offset < 0:
            entry.transaction_first_offset = first_offset
            self.ongoing[first_offset] = producer_id

    def _add(self, entry: ProducerEntry) -> ProducerEntry:
        if len(self.entries) >= self._entries_max:
            self._forget_oldest()
        self.entries[entry.producer_id] = entry
        return entry

    def _forget_oldest(self) -> None:
        """Forget the producers whose last batch is the furthest back in the log, a tenth of them at once.

        This depends on nothing but the log, so a replay after a crash comes to the same entries."""
        ended = [entry for entry in self.entries.values() if entry.transaction_first_offset < 0]
        for entry in nsmallest(PRODUCERS_MAX // 10, ended, key=lambda entry: entry.last_offset):
            del self.entries[entry.producer_id]
        # Where so many transactions are open that nothing can be forgotten, do not search at every batch.
        self._entries_max = max(PRODUCERS_MAX, len(self.entries) + PRODUCERS_MAX // 10)

    def check_marker(self, batch: ProducerFields, marker: Marker) -> None:
        entry = self.entries.get(batch.producer_id)
        if entry is None:
            return
        self._check_epoch(entry, batch.producer_epoch)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} for producer {batch.producer_id} is older "
                f"than {entry.coordinator_epoch}, which has already written a marker",
            )

    def record_marker(
        self, batch: ProducerFields, marker: Marker, offset: int
    ) -> tuple[CompletedTransaction, int] | None:
        """A marker was appended at `offset`; returns the transaction that it ends and the last stable offset
        after it.

        None if the transaction wrote nothing to this partition."""
        entry = self.entries.get(batch.producer_id) or self._add(ProducerEntry(batch.producer_id))
        first = entry.transaction_first_offset
        self.verifying.pop(batch.producer_id, None)
        entry.move_to_epoch(batch.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = batch.max_timestamp
        entry.transaction_first_offset = NO_OFFSET
        if first < 0:
            return None
        self.ongoing.pop(first, None)
        self.unreplicated[first] = offset
        last_stable = next(iter(self.ongoing), offset + 1)
        return CompletedTransaction(
            batch.producer_id, first, offset, marker.kind == ABORT_MARKER
        ), last_stable

    def first_unstable_offset(self) -> int | None:
        """The lowest offset whose transaction is open, or whose marker is not replicated yet."""
        first = next(iter(self.ongoing), None)
        if self.unreplicated:
            lowest = min(self.unreplicated)
            return lowest if first is None or lowest < first else first
        return first

    def forget_replicated(self, offset: int) -> None:
        """Everything below `offset` is replicated or deleted."""
        done = [first for first, last in self.unreplicated.items() if last < offset]
        for first in done:
            del self.unreplicated[first]

    def load(self, entries: dict[int, ProducerEntry]) -> None:
        self.entries = entries
        opened = [e for e in entries.values() if e.transaction_first_offset >= 0]
        opened.sort(key=lambda entry: entry.transaction_first_offset)
        self.ongoing = {entry.transaction_first_offset: entry.producer_id for entry in opened}
        self.unreplicated = {}

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that have been idle for too long, except those with an open transaction; returns
        how many. Those that have given up a batch may go on with the next one."""
        self.refused.clear()
        idle = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.transaction_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in idle:
            del self.entries[producer_id]
        return len(idle)

    def _check_epoch(self, entry: ProducerEntry, epoch: int) -> None:
        if epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {epoch} of producer {entry.producer_id} is older than its epoch {entry.epoch}",
            )

    def _check_sequence(self, entry: ProducerEntry, batch: ProducerFields) -> None:
        sequence = batch.base_sequence
        if batch.producer_epoch != entry.epoch:
            expected = 0
        else:
            expected = (entry.last_sequence + 1) & SEQUENCE_MAX
        if sequence != expected:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"batch of producer {entry.producer_id} with epoch {batch.producer_epoch} is out of order: "
                f"expected sequence {expected}, got {sequence}",
            )
