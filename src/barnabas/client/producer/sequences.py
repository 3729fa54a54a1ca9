"""Sequence numbers of an idempotent producer: how they are assigned, and what errors mean. No I/O here.

Each partition numbers its records within the producer's current epoch. A batch stays in `in_flight` from the
time it is first sent until its outcome is known, retries included, so no batch overtakes one with a lower
sequence. If the broker has lost the producer's state, a producer without transactions starts the next epoch
and numbers the batches of the partition from 0 again. A producer with transactions must abort."""

from collections.abc import Hashable

from barnabas.client.errors import ErrorCode
from barnabas.client.producer.batch import ProducerBatch
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

SEQUENCE_MASK = 0x7FFFFFFF
EPOCH_MAX = 32767
NO_OFFSET = -1


class PartitionSequences:
    def __init__(self, producer_id: int, epoch: int) -> None:
        self.in_flight: list[ProducerBatch] = []
        # A batch expired after it was sent. Whether it was written is known once the later batches are done.
        self.is_unresolved = False
        self.acked_offset = NO_OFFSET
        self.restart(producer_id, epoch)

    def restart(self, producer_id: int, epoch: int) -> None:
        """Number from 0 in this epoch. Batches in flight keep their order."""
        self.producer_id, self.epoch = producer_id, epoch
        self.next = 0
        self.acked = -1
        for batch in self.in_flight:
            self.number(batch)
            batch.has_been_reset = True

    def number(self, batch: ProducerBatch) -> None:
        batch.producer_id, batch.producer_epoch, batch.base_sequence = self.producer_id, self.epoch, self.next
        self.next = (self.next + batch.count) & SEQUENCE_MASK

    @property
    def is_unknown(self) -> bool:
        """Whether the broker has never confirmed a batch of this partition."""
        return self.acked < 0 and self.acked_offset == NO_OFFSET

    def is_passed(self, batch: ProducerBatch) -> bool:
        """Whether the broker has confirmed a later sequence than that of the batch, in the batch's epoch."""
        is_current = (batch.producer_id, batch.producer_epoch) == (self.producer_id, self.epoch)
        return is_current and self.acked >= 0 and (self.acked - batch.base_sequence) & SEQUENCE_MASK < 1 << 30

    @property
    def expected(self) -> int:
        """The sequence that follows the last one the broker has confirmed."""
        return (self.acked + 1) & SEQUENCE_MASK


class SequenceBook:
    """The producer's id and epoch, and the sequences of every partition. A key stands for a partition."""

    def __init__(self, is_transactional: bool) -> None:
        self.is_transactional = is_transactional
        self.producer_id = NO_PRODUCER_ID
        self.epoch = NO_PRODUCER_EPOCH
        # Partitions to number from 0 again as soon as none of their batches is in a request.
        self.to_restart: set[Hashable] = set()
        self._partitions: dict[Hashable, PartitionSequences] = {}

    @property
    def has_id(self) -> bool:
        return self.producer_id >= 0

    def begin(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch

    def of(self, key: Hashable) -> PartitionSequences:
        sequences = self._partitions.get(key)
        if sequences is None:
            sequences = self._partitions[key] = PartitionSequences(self.producer_id, self.epoch)
        return sequences

    # ---- sending

    def may_send(self, key: Hashable, batch: ProducerBatch) -> bool:
        if not self.has_id or key in self.to_restart:
            return False
        sequences = self.of(key)
        if batch.base_sequence >= 0:
            # Retries are sent one at a time, the lowest sequence first.
            return sequences.in_flight[0] is batch
        if sequences.is_unresolved or (sequences.in_flight and sequences.in_flight[0].attempts > 1):
            return False
        if sequences.in_flight and sequences.is_unknown:
            # A broker that has no state of the producer accepts any first sequence. If a broker refused the
            # first batch because it is not the leader yet, the second batch could overtake the first.
            return False
        is_stale = (sequences.producer_id, sequences.epoch) != (self.producer_id, self.epoch)
        return not (is_stale and sequences.in_flight)

    def sending(self, key: Hashable, batch: ProducerBatch) -> None:
        """Give the batch its sequence, unless it has one from an earlier attempt."""
        if batch.base_sequence >= 0:
            return
        sequences = self.of(key)
        if (sequences.producer_id, sequences.epoch) != (self.producer_id, self.epoch):
            sequences.restart(self.producer_id, self.epoch)
        sequences.number(batch)
        sequences.in_flight.append(batch)

    def may_send_many(self, key: Hashable, first: ProducerBatch) -> bool:
        """Whether several new batches, of which this is the first, may be sent one after the other."""
        if first.base_sequence >= 0 or not self.may_send(key, first):
            return False
        sequences = self.of(key)
        is_current = (sequences.producer_id, sequences.epoch) == (self.producer_id, self.epoch)
        return is_current and not sequences.is_unknown

    def sending_many(self, key: Hashable, batches: list[ProducerBatch]) -> None:
        """Give new batches their sequences, after `may_send_many`."""
        sequences = self.of(key)
        for batch in batches:
            sequences.number(batch)
        sequences.in_flight += batches

    def take_back(self, key: Hashable, batches: list[ProducerBatch]) -> None:
        """The last batches that got sequences were not sent after all, and have none again."""
        sequences = self.of(key)
        sequences.next = batches[0].base_sequence
        del sequences.in_flight[len(sequences.in_flight) - len(batches) :]
        for batch in batches:
            batch.producer_id, batch.producer_epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
            batch.base_sequence = NO_SEQUENCE

    def split(self, key: Hashable, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """The parts of a split batch share its range of sequences."""
        if batch.base_sequence < 0:
            return
        sequences = self.of(key)
        sequence = batch.base_sequence
        for part in parts:
            part.producer_id, part.producer_epoch = batch.producer_id, batch.producer_epoch
            part.base_sequence = sequence
            sequence = (sequence + part.count) & SEQUENCE_MASK
        place = sequences.in_flight.index(batch)
        sequences.in_flight[place : place + 1] = parts

    # ---- outcomes

    def acknowledged(self, key: Hashable, batch: ProducerBatch, base_offset: int) -> None:
        sequences = self.of(key)
        self._leave(sequences, batch)
        if (batch.producer_id, batch.producer_epoch) == (sequences.producer_id, sequences.epoch):
            sequences.acked = (batch.base_sequence + batch.count - 1) & SEQUENCE_MASK
        if base_offset >= 0:
            sequences.acked_offset = max(sequences.acked_offset, base_offset + batch.count - 1)
        self._resolve(key, sequences)

    def acknowledged_many(self, key: Hashable, batches: list[ProducerBatch], last_base_offset: int) -> None:
        """The first batches in flight are confirmed, all in one epoch; the last has this offset."""
        sequences = self.of(key)
        for batch in batches[:-1]:
            self._leave(sequences, batch)
        self.acknowledged(key, batches[-1], last_base_offset)

    def can_retry(self, key: Hashable, batch: ProducerBatch, error: ErrorCode, log_start: int) -> bool:
        """Whether the batch may be sent again after this error; may mark the partition for renumbering."""
        if error is ErrorCode.UNKNOWN_PRODUCER_ID:
            return self._can_retry_unknown(key, batch, log_start)
        if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return self._can_retry_gap(key, batch)
        return error.retriable

    def _can_retry_unknown(self, key: Hashable, batch: ProducerBatch, log_start: int) -> bool:
        sequences = self.of(key)
        if log_start == -1 or batch.has_been_reset:
            return True
        if not self.is_transactional or sequences.acked_offset < log_start:
            # The broker has lost the producer's state, for example because retention removed its records.
            self.to_restart.add(key)
            return True
        return False

    def _can_retry_gap(self, key: Hashable, batch: ProducerBatch) -> bool:
        sequences = self.of(key)
        # If a later batch is confirmed and this one is reported as out of order rather than as a duplicate,
        # it was never written, and the broker will never accept it with this sequence.
        is_stuck = batch.base_sequence == sequences.expected or sequences.is_passed(batch)
        if not sequences.is_unresolved and (batch.has_been_reset or not is_stuck):
            return True
        if self.is_transactional:
            return False
        if not sequences.is_unresolved or sequences.in_flight[0] is batch:
            self.to_restart.add(key)
        return True

    def failed(self, key: Hashable, batch: ProducerBatch, was_refused: bool) -> None:
        """A batch has failed and is not retried. `was_refused`: the broker certainly did not write it."""
        if batch.base_sequence < 0:
            return
        sequences = self.of(key)
        self._leave(sequences, batch)
        if not was_refused:
            sequences.is_unresolved = True
        elif self.is_transactional:
            # The transaction has failed. Close the gap in the sequences of the batches that follow.
            sequences.next = (sequences.next - batch.count) & SEQUENCE_MASK
            for later in sequences.in_flight:
                later.base_sequence = (later.base_sequence - batch.count) & SEQUENCE_MASK
                later.has_been_reset = True
        else:
            self.to_restart.add(key)
        self._resolve(key, sequences)

    def _leave(self, sequences: PartitionSequences, batch: ProducerBatch) -> None:
        if batch in sequences.in_flight:
            sequences.in_flight.remove(batch)

    def _resolve(self, key: Hashable, sequences: PartitionSequences) -> None:
        if not sequences.is_unresolved or sequences.in_flight:
            return
        sequences.is_unresolved = False
        if sequences.next != sequences.expected and not self.is_transactional:
            self.to_restart.add(key)

    # ---- starting over

    def restart(self, keys: set[Hashable]) -> None:
        """Number these partitions from 0. The caller has started a new epoch before."""
        for key in keys:
            self.to_restart.discard(key)
            self.of(key).restart(self.producer_id, self.epoch)
