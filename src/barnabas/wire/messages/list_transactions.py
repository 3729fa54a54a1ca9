"""ListTransactions, key 66, versions 0-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 66
VERSIONS = (0, 2)
FLEXIBLE_FROM = 0


class ListTransactionsRequest(Message):
    state_filters: list[str] = EMPTY
    producer_id_filters: list[int] = EMPTY
    duration_filter: int = -1
    transactional_id_pattern: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("state_filters", "string", 0, 2, array=True),
        Field("producer_id_filters", "int64", 0, 2, array=True),
        Field("duration_filter", "int64", 1, 2),
        Field("transactional_id_pattern", "string", 2, 2, nullable_from=2),
    )


class TransactionState(Message):
    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 0, 2),
        Field("producer_id", "int64", 0, 2),
        Field("transaction_state", "string", 0, 2),
    )


class ListTransactionsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: list[str] = EMPTY
    transaction_states: list[TransactionState] = EMPTY

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 2),
        Field("error_code", "int16", 0, 2),
        Field("unknown_state_filters", "string", 0, 2, array=True),
        Field("transaction_states", TransactionState, 0, 2, array=True),
    )


REQUEST = ListTransactionsRequest
RESPONSE = ListTransactionsResponse
