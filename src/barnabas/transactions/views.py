"""Answers of DescribeTransactions and ListTransactions."""

from collections.abc import Iterable, Mapping

from barnabas.coordination.patterns import Pattern
from barnabas.errors import ErrorCode, KafkaError
from barnabas.transactions.metadata import Transaction
from barnabas.transactions.states import BY_NAME
from barnabas.wire.messages import describe_transactions, list_transactions
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


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


def listed(
    transactions: Mapping[str, Transaction], request: ListTransactionsRequest, now_ms: int
) -> ListTransactionsResponse:
    states = {BY_NAME[name] for name in request.state_filters if name in BY_NAME}
    producer_ids = set(request.producer_id_filters)
    try:
        expression = request.transactional_id_pattern
        pattern = Pattern(expression) if expression else None
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)

    def matches_filters(transactional_id: str, transaction: Transaction) -> bool:
        if producer_ids and transaction.producer_id not in producer_ids:
            return False
        if request.state_filters and transaction.state not in states:
            return False
        if 0 <= request.duration_filter >= now_ms - transaction.start_ms:
            return False
        return pattern is None or pattern.matches(transactional_id)

    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in BY_NAME],
        transaction_states=[
            list_transactions.TransactionState(
                transactional_id=transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.shown,
            )
            for transactional_id, transaction in transactions.items()
            if matches_filters(transactional_id, transaction)
        ],
    )


def merged(listings: Iterable[ListTransactionsResponse]) -> ListTransactionsResponse:
    """One answer from those of all shards; the first error, if there is one."""
    whole = ListTransactionsResponse()
    for listing in listings:
        if listing.error_code != ErrorCode.NONE:
            return listing
        whole.unknown_state_filters = listing.unknown_state_filters
        whole.transaction_states.extend(listing.transaction_states)
    return whole


def code_for(error: KafkaError, version: int, first_fencing_version: int) -> ErrorCode:
    """Clients before `first_fencing_version` do not know PRODUCER_FENCED and get the older code for it."""
    if error.code is ErrorCode.PRODUCER_FENCED and version < first_fencing_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error.code
