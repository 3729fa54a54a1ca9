"""The state of one transactional id, and how each move changes it.

A Transaction is a value: every method returns the next one. `MOVES` says which states may follow."""

from dataclasses import dataclass, replace

from barnabas.ids import TopicPartition
from barnabas.transactions.states import AT_REST, MOVES, PREPARED, State

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIMESTAMP = -1
EPOCH_MAX = 2**15 - 1
# The last epoch of a client. One more is left, so that the coordinator can always fence it.
CLIENT_EPOCH_MAX = EPOCH_MAX - 1
# From this client version on each end of a transaction raises the epoch (KIP-890).
EPOCH_BUMP_VERSION = 2
# Transactions with this timeout never time out: an outside coordinator ends them.
TIMEOUT_NEVER_MS = 2**31 - 1


class InvalidMoveError(Exception):
    """A defect in Barnabas: no request can cause it."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """A client must send `producer_id` and `epoch`. Only between the end of a transaction and its last marker
    does the client go on with `next_producer_id`, if there is one."""

    producer_id: int
    timeout_ms: int
    update_ms: int
    epoch: int = NO_EPOCH
    state: State = State.EMPTY
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    # 2 if the client's epoch changes with each transaction.
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
        """A producer starts, or continues after an error."""
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
        """A producer starts whose id has no epochs left: it gets a new id."""
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
        """The producer can no longer end the transaction. The abort follows at once.

        From version 2 on the abort itself raises the epoch."""
        bump = 0 if transaction_version >= EPOCH_BUMP_VERSION or self.epoch == EPOCH_MAX else 1
        return self._moved(State.PREPARE_EPOCH_FENCE, replace(self, epoch=self.epoch + bump))

    def prepared(
        self, state: State, client_version: int, next_producer_id: int, now_ms: int
    ) -> "Transaction":
        """It is decided how the transaction ends. The markers must be written."""
        bump = client_version >= EPOCH_BUMP_VERSION and self.epoch < EPOCH_MAX
        return self._moved(
            state,
            replace(
                self,
                epoch=self.epoch + 1 if bump else self.epoch,
                next_producer_id=next_producer_id,
                # An abort may come before the transaction has begun; then it begins and ends now.
                start_ms=now_ms if self.state in AT_REST else self.start_ms,
                update_ms=now_ms,
                client_version=client_version,
            ),
        )

    def completed(self, now_ms: int) -> "Transaction":
        """Every partition has its marker."""
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
