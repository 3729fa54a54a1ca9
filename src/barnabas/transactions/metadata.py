"""All that is known of one transactional id, and what it becomes by each move.

A value: every method gives the next one, and only `MOVES` says which may follow."""

from dataclasses import dataclass, replace

from barnabas.ids import TopicPartition
from barnabas.transactions.states import AT_REST, MOVES, PREPARED, State

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIMESTAMP = -1
EPOCH_MAX = 2**15 - 1
# The last epoch a client may hold: one more is left, so that the coordinator can always fence it.
CLIENT_EPOCH_MAX = EPOCH_MAX - 1
# The client version from which each end of a transaction bumps the epoch (KIP-890).
EPOCH_BUMP_VERSION = 2
# The timeout of transactions whose end is left to an outside coordinator: none.
TIMEOUT_NEVER_MS = 2**31 - 1


class InvalidMoveError(Exception):
    """The coordinator wanted a move that cannot be: a defect, never a client's fault."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """`producer_id` and `epoch` are those the client has to name, except between the end of a transaction and
    its last marker: then `next_producer_id`, if any, is what the client was told to go on with."""

    producer_id: int
    timeout_ms: int
    update_ms: int
    epoch: int = NO_EPOCH
    state: State = State.EMPTY
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    # How the client speaks: 2 if its epoch changes with each transaction.
    client_version: int = 0

    @property
    def epoch_is_exhausted(self) -> bool:
        return self.epoch >= CLIENT_EPOCH_MAX

    @property
    def is_prepared(self) -> bool:
        return self.state in PREPARED

    @property
    def is_commit(self) -> bool:
        return self.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)

    def initialized(self, epoch: int, timeout_ms: int, now_ms: int) -> "Transaction":
        """A producer starts, or goes on after an error."""
        return self._moved(
            State.EMPTY,
            replace(
                self,
                epoch=epoch,
                timeout_ms=timeout_ms,
                partitions=frozenset(),
                start_ms=NO_TIMESTAMP,
                update_ms=now_ms,
            ),
        )

    def rotated(self, producer_id: int, timeout_ms: int, now_ms: int) -> "Transaction":
        """A producer starts when its id has no epochs left."""
        return replace(self.initialized(0, timeout_ms, now_ms), producer_id=producer_id)

    def with_partitions(
        self, added: frozenset[TopicPartition], client_version: int, now_ms: int
    ) -> "Transaction":
        return self._moved(
            State.ONGOING,
            replace(
                self,
                partitions=self.partitions | added,
                start_ms=now_ms if self.state in AT_REST else self.start_ms,
                update_ms=now_ms,
                client_version=client_version,
            ),
        )

    def fenced(self, transaction_version: int) -> "Transaction":
        """The producer loses its right to end the transaction, for the abort that follows at once.

        From version 2 on the abort itself takes the next epoch."""
        bump = 0 if transaction_version >= EPOCH_BUMP_VERSION or self.epoch == EPOCH_MAX else 1
        return self._moved(State.PREPARE_EPOCH_FENCE, replace(self, epoch=self.epoch + bump))

    def prepared(
        self, state: State, client_version: int, next_producer_id: int, now_ms: int
    ) -> "Transaction":
        """How it ends is decided; the partitions are to be told."""
        bump = client_version >= EPOCH_BUMP_VERSION and self.epoch < EPOCH_MAX
        return self._moved(
            state,
            replace(
                self,
                epoch=self.epoch + 1 if bump else self.epoch,
                next_producer_id=next_producer_id,
                # An abort of what never began has no start of its own.
                start_ms=now_ms if self.state in AT_REST else self.start_ms,
                update_ms=now_ms,
                client_version=client_version,
            ),
        )

    def completed(self, now_ms: int) -> "Transaction":
        """Every partition knows."""
        state = State.COMPLETE_COMMIT if self.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT
        rotates = self.client_version >= EPOCH_BUMP_VERSION and self.next_producer_id != NO_PRODUCER_ID
        return self._moved(
            state,
            replace(
                self,
                producer_id=self.next_producer_id if rotates else self.producer_id,
                epoch=0 if rotates else self.epoch,
                next_producer_id=NO_PRODUCER_ID,
                partitions=frozenset(),
                update_ms=now_ms,
            ),
        )

    def _moved(self, state: State, following: "Transaction") -> "Transaction":
        if state not in MOVES[self.state]:
            raise InvalidMoveError(f"a transaction cannot move from {self.state.shown} to {state.shown}")
        return replace(following, state=state, previous_producer_id=self.producer_id)
