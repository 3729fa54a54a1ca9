"""How a transaction ends: by its client (EndTxn), or by the coordinator, which aborts it.

Version 1 clients (EndTxn up to 4) keep their epoch, so a repeated request looks like the next one:

                 abort              commit
  Empty          INVALID_TXN_STATE  INVALID_TXN_STATE
  Ongoing        aborts             commits
  CompleteAbort  done               INVALID_TXN_STATE
  CompleteCommit INVALID_TXN_STATE  done

Version 2 clients (EndTxn 5) get a new epoch with each end. A repeated request has the epoch before the
current one. A client that does not know whether its transaction has begun may abort it in any case:

                 abort, current  abort, repeat      commit, current    commit, repeat
  Empty          ends            PRODUCER_FENCED    INVALID_TXN_STATE  PRODUCER_FENCED
  Ongoing        aborts          PRODUCER_FENCED    commits            PRODUCER_FENCED
  CompleteAbort  ends            done               INVALID_TXN_STATE  INVALID_TXN_STATE
  CompleteCommit ends            INVALID_TXN_STATE  INVALID_TXN_STATE  done

While markers are written, every request gets CONCURRENT_TRANSACTIONS. Another epoch gets PRODUCER_FENCED,
another producer id gets INVALID_PRODUCER_ID_MAPPING."""

from collections.abc import Callable

from barnabas.errors import ErrorCode, KafkaError
from barnabas.transactions.metadata import (
    CLIENT_EPOCH_MAX,
    EPOCH_BUMP_VERSION,
    NO_PRODUCER_ID,
    Transaction,
)
from barnabas.transactions.states import State
from barnabas.wire.messages.end_txn import EndTxnRequest

FIRST_BUMPING_END_TXN = 5


def client_version_of(end_txn_version: int) -> int:
    return EPOCH_BUMP_VERSION if end_txn_version >= FIRST_BUMPING_END_TXN else 0


def ended_by_client_1(current: Transaction, request: EndTxnRequest, now_ms: int) -> Transaction | None:
    """The prepared transaction, or None if the request repeats one that was done."""
    if current.producer_id != request.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.epoch != request.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if current.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state is State.ONGOING:
        return current.prepared(_target(request), 0, NO_PRODUCER_ID, now_ms)
    if current.state is _outcome(request):
        return None
    raise KafkaError(ErrorCode.INVALID_TXN_STATE, _mismatch(current, request))


def ended_by_client_2(
    current: Transaction, request: EndTxnRequest, fresh_producer_id: Callable[[], int], now_ms: int
) -> Transaction | None:
    """The prepared transaction, or None if the request repeats one that was done."""
    if current.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    used_up_its_id = (
        request.producer_id == current.previous_producer_id
        and request.producer_epoch == CLIENT_EPOCH_MAX
        and current.epoch == 0
    )
    if request.producer_id != current.producer_id and not used_up_its_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_complete = current.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    if is_complete and (used_up_its_id or request.producer_epoch + 1 == current.epoch):
        if current.state is _outcome(request):
            return None
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, _mismatch(current, request))
    if request.producer_epoch != current.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if current.state is not State.ONGOING and request.committed:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, _mismatch(current, request))
    next_producer_id = fresh_producer_id() if current.epoch_is_exhausted else NO_PRODUCER_ID
    return current.prepared(_target(request), EPOCH_BUMP_VERSION, next_producer_id, now_ms)


def ended_by_coordinator(
    current: Transaction, transaction_version: int, fresh_producer_id: Callable[[], int], now_ms: int
) -> Transaction:
    """Abort an ongoing transaction, and fence its producer."""
    bumps = transaction_version >= EPOCH_BUMP_VERSION
    # Without a new id, a repeat of the client's own abort would get an epoch that cannot be raised.
    rotates = bumps and current.epoch_is_exhausted
    next_producer_id = fresh_producer_id() if rotates else NO_PRODUCER_ID
    fenced = current.fenced(transaction_version)
    client_version = EPOCH_BUMP_VERSION if bumps else 0
    return fenced.prepared(State.PREPARE_ABORT, client_version, next_producer_id, now_ms)


def _target(request: EndTxnRequest) -> State:
    return State.PREPARE_COMMIT if request.committed else State.PREPARE_ABORT


def _outcome(request: EndTxnRequest) -> State:
    return State.COMPLETE_COMMIT if request.committed else State.COMPLETE_ABORT


def _mismatch(current: Transaction, request: EndTxnRequest) -> str:
    action = "committed" if request.committed else "aborted"
    return f"a transaction in state {current.state.shown} cannot be {action}"
