"""Answers of DescribeTransactions and ListTransactions."""

from collections.abc import Generator, Iterable, Mapping
from typing import NamedTuple

from barnabas.coordination.patterns import Pattern
from barnabas.errors import ErrorCode, KafkaError
from barnabas.transactions.metadata import Transaction
from barnabas.transactions.states import BY_NAME, State
from barnabas.wire.messages import describe_transactions, list_transactions
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

Listed = list[list_transactions.TransactionState]


def described(
    transactional_id: str, transaction: Transaction | None
) -> describe_transactions.TransactionState:
    if transaction is None:
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST
        return describe_transactions.TransactionState(transactional_id=transactional_id, error_code=code)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    return describe_transactions.TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.shown,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=[
            describe_transactions.TopicData(topic=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
    )


class Filters(NamedTuple):
    """Which transactions a ListTransactions request asks for; a filter that is None matches all of them."""

    states: set[State] | None
    # The names that are not those of states, each once.
    unknown_states: dict[str, None]
    producer_ids: set[int] | None
    duration_ms: int
    pattern: Pattern | None

    def match(self, transactional_id: str, transaction: Transaction, now_ms: int) -> bool:
        if self.producer_ids is not None and transaction.producer_id not in self.producer_ids:
            return False
        if self.states is not None and transaction.state not in self.states:
            return False
        if 0 <= self.duration_ms >= now_ms - transaction.start_ms:
            return False
        return self.pattern is None or self.pattern.matches(transactional_id)


def filters_of(request: ListTransactionsRequest) -> Generator[None, None, Filters]:
    """Pauses after each name of a state; they may be many and long.

    Raises INVALID_REGULAR_EXPRESSION."""
    expression = request.transactional_id_pattern
    pattern = Pattern(expression) if expression else None
    states: set[State] = set()
    unknown_states: dict[str, None] = {}
    for name in request.state_filters:
        if name in BY_NAME:
            states.add(BY_NAME[name])
        else:
            unknown_states[name] = None
        yield
    return Filters(
        states if request.state_filters else None,
        unknown_states,
        set(request.producer_id_filters) or None,
        request.duration_filter,
        pattern,
    )


def listed(transactions: Mapping[str, Transaction], filters: Filters, now_ms: int) -> Listed:
    return [
        list_transactions.TransactionState(
            transactional_id=transactional_id,
            producer_id=transaction.producer_id,
            transaction_state=transaction.state.shown,
        )
        for transactional_id, transaction in transactions.items()
        if filters.match(transactional_id, transaction, now_ms)
    ]


def merged(listings: Iterable[Listed | ErrorCode], filters: Filters) -> ListTransactionsResponse:
    """One answer from those of all shards; the first error, if there is one."""
    whole = ListTransactionsResponse(unknown_state_filters=list(filters.unknown_states))
    for listing in listings:
        if isinstance(listing, ErrorCode):
            return ListTransactionsResponse(error_code=listing)
        whole.transaction_states.extend(listing)
    return whole


def code_for(error: KafkaError, version: int, first_fencing_version: int) -> ErrorCode:
    """Clients before `first_fencing_version` do not know PRODUCER_FENCED and get the older code for it."""
    if error.code is ErrorCode.PRODUCER_FENCED and version < first_fencing_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error.code
