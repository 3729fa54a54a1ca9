"""What the coordinator answers beside records and replies: markers that partitions have to get, and the keys
of its timers."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.coordination.step import Reply, Step
from barnabas.ids import TopicPartition
from barnabas.transactions.metadata import Transaction


class MarkersToWrite(NamedTuple):
    """The end of a transaction, to be told to these partitions once the step's records are committed.

    What became of it goes back through `TransactionMachine.markers_written`, with this value."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    partitions: frozenset[TopicPartition]
    # From 2 on a partition takes the marker only if its epoch is above that of the records it ends.
    transaction_version: int


@dataclass(slots=True)
class TransactionStep(Step[Reply]):
    """A step, and the markers to write after its records are committed."""

    markers: list[MarkersToWrite] = field(default_factory=list)


class _NeedsProducerId:
    def __repr__(self) -> str:
        return "NEEDS_PRODUCER_ID"


# The reply of a step that needs a fresh producer id when none was at hand: get some, and ask again.
NEEDS_PRODUCER_ID: Any = _NeedsProducerId()


class NoProducerIdError(Exception):
    """A fresh producer id is needed and none is at hand."""


class TransactionTimeout(NamedTuple):
    """The timer of one transaction, named so that it cannot end a later one of the same id."""

    transactional_id: str
    producer_id: int
    epoch: int
    start_ms: int


def timeout_key(transactional_id: str, transaction: Transaction) -> TransactionTimeout:
    return TransactionTimeout(
        transactional_id, transaction.producer_id, transaction.epoch, transaction.start_ms
    )


# The timer that looks for unused transactional ids.
EXPIRATION = "transactional ids that were not used for long"
