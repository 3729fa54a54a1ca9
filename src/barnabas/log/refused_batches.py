"""Batches that a partition could not take for the moment: too few replicas were in sync, another broker led,
the disk was full. No I/O.

A producer sends such a batch again, but it may have sent others behind it already. They would be out of
order. Some clients answer that error with a new epoch, in which they send everything again that is not
acknowledged, also what other partitions have already written. So a batch behind a refused one gets the same
error, and comes again, too. A producer that never sends the refused batch again has given it up: after some
attempts, what comes behind it is out of order."""

from typing import NamedTuple, Protocol

from barnabas.errors import ErrorCode, KafkaError

# Beyond so many producers, those that were refused earliest are forgotten.
PRODUCERS_MAX = 1000
# So many batches behind a refused one have to wait for it, each time that it is refused.
WAITING_MAX = 100
SEQUENCES = 2**31


class SequencedBatch(Protocol):
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...


class Refused(NamedTuple):
    """What is missing of one producer: a batch with the sequence `first`, and perhaps others up to the one
    that begins with `last`. `waited`: how often another batch came before it."""

    epoch: int
    first: int
    last: int
    code: ErrorCode
    waited: int = 0


class RefusedBatches:
    """The refused batches of one partition, by producer id."""

    def __init__(self) -> None:
        self._by_producer: dict[int, Refused] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def add(self, batch: SequencedBatch, code: ErrorCode) -> None:
        known = self._by_producer.get(batch.producer_id)
        if known is None and len(self._by_producer) >= PRODUCERS_MAX:
            del self._by_producer[next(iter(self._by_producer))]
        sequence = batch.base_sequence
        if known is None or known.epoch != batch.producer_epoch:
            refused = Refused(batch.producer_epoch, sequence, sequence, code)
        elif not is_behind(sequence, known.first):
            refused = known._replace(first=sequence, code=code, waited=0)
        else:
            refused = known._replace(last=sequence if is_behind(sequence, known.last) else known.last)
        self._by_producer[batch.producer_id] = refused

    def check(self, batch: SequencedBatch) -> None:
        """For a batch that does not follow the last one that was written: raise if it is behind a refused
        one, which has not come again."""
        known = self._by_producer.get(batch.producer_id)
        if known is None or known.epoch != batch.producer_epoch:
            return
        if not is_behind(batch.base_sequence, known.first):
            return
        if known.waited >= WAITING_MAX:
            del self._by_producer[batch.producer_id]
            return
        self._by_producer[batch.producer_id] = known._replace(waited=known.waited + 1)
        raise KafkaError(
            known.code,
            f"producer {batch.producer_id} has to send the batch with sequence {known.first} again before the"
            f" one with sequence {batch.base_sequence}",
        )

    def written(self, producer_id: int, epoch: int, next_sequence: int) -> None:
        """Everything before `next_sequence` is in the log."""
        known = self._by_producer.get(producer_id)
        if known is None:
            return
        if known.epoch == epoch and not is_behind(next_sequence, known.last):
            self._by_producer[producer_id] = known._replace(first=next_sequence, waited=0)
        else:
            del self._by_producer[producer_id]

    def clear(self) -> None:
        self._by_producer.clear()


def is_behind(sequence: int, other: int) -> bool:
    """Whether a producer uses `sequence` after `other`. After the highest one they begin again at 0."""
    return 0 < (sequence - other) % SEQUENCES < SEQUENCES // 2
