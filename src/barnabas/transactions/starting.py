"""Who may start with a transactional id, and with which producer id and epoch (InitProducerId).

A producer that sends no producer id starts from the beginning, and fences all earlier ones. A producer that
sends its id and epoch continues after an error (KIP-360), unless another one has started since. A repeated
request gets the same answer."""

from collections.abc import Callable

from barnabas.coordination.step import Producer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.transactions.metadata import CLIENT_EPOCH_MAX, NO_EPOCH, NO_PRODUCER_ID, Transaction
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.states import State
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest


def check_request(request: InitProducerIdRequest, settings: TransactionSettings) -> None:
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "send both the producer id and its epoch, or neither")
    if request.enable2_pc:
        # Kafka's answer while transaction.two.phase.commit.enable is false; here it cannot be true.
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keep_prepared_txn:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if not 0 < request.transaction_timeout_ms <= settings.max_timeout_ms:
        raise KafkaError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"the transaction timeout must be between 1 and {settings.max_timeout_ms} ms",
        )


def expected_producer(request: InitProducerIdRequest) -> Producer | None:
    if request.producer_id == NO_PRODUCER_ID:
        return None
    return Producer(request.producer_id, request.producer_epoch)


def check_right_to_start(current: Transaction, expected: Producer | None) -> None:
    """Raise if the caller must wait, or was fenced."""
    if current.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if expected is None:
        return
    may_go_on = (
        current.epoch == NO_EPOCH
        or expected.id == current.producer_id
        # The request that used up the epochs of the old id is repeated.
        or (expected.id == current.previous_producer_id and expected.epoch >= CLIENT_EPOCH_MAX)
    )
    if not may_go_on:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if current.state is State.ONGOING and expected.epoch != current.epoch:
        # Kafka would abort the transaction and then refuse the caller. Here a late request of a fenced
        # producer does not disturb the producer that came after it.
        raise KafkaError(ErrorCode.PRODUCER_FENCED)


def started(
    current: Transaction,
    expected: Producer | None,
    last_epoch: int,
    fresh_producer_id: Callable[[], int],
    timeout_ms: int,
    now_ms: int,
) -> tuple[Transaction, int]:
    """The transaction with a new epoch, and the epoch before it, which a repeated request will have."""
    if expected is None or current.epoch in (NO_EPOCH, expected.epoch):
        before = NO_EPOCH if expected is None else current.epoch
        if current.epoch_is_exhausted:
            return current.rotated(fresh_producer_id(), timeout_ms, now_ms), before
        return current.initialized(current.epoch + 1, timeout_ms, now_ms), before
    if expected.epoch == last_epoch:
        return current.initialized(current.epoch, timeout_ms, now_ms), last_epoch
    raise KafkaError(ErrorCode.PRODUCER_FENCED)
