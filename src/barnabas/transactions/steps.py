"""What a transaction step has besides records and a reply: markers to write, and keys of timers."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.coordination.step import Reply, Step
from barnabas.ids import TopicPartition
from barnabas.transactions.metadata import Transaction


class MarkersToWrite(NamedTuple):
    """The end of a transaction, to be written to these partitions when the step's records are committed.

    The results go to `TransactionMachine.markers_written`, together with this value."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    partitions: frozenset[TopicPartition]
    # From 2 on a partition takes the marker only if its epoch is higher than that of the records.
    transaction_version: int


@dataclass(slots=True)
class TransactionStep(Step[Reply]):
    """A step with markers, which are written when its records are committed."""

    markers: list[MarkersToWrite] = field(default_factory=list)


class _NeedsProducerId:
    def __repr__(self) -> str:
        return "NEEDS_PRODUCER_ID"


# The reply of a step that needs a new producer id while there is none: get some, and call again.
NEEDS_PRODUCER_ID: Any = _NeedsProducerId()


class NoProducerIdError(Exception):
    """A new producer id is needed, and there is none at the moment."""


class TransactionTimeout(NamedTuple):
    """The key of a transaction's timer. It has all of these fields so that it cannot end a later transaction
    of the same transactional id."""

    transactional_id: str
    producer_id: int
    epoch: int
    start_ms: int


def timeout_key(transactional_id: str, transaction: Transaction) -> TransactionTimeout:
    return TransactionTimeout(
        transactional_id, transaction.producer_id, transaction.epoch, transaction.start_ms
    )


# The key of the timer that removes unused transactional ids.
EXPIRATION = "expiration of transactional ids"
