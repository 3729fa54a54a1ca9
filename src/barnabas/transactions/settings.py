"""The configuration of the transaction coordinator, with Kafka's defaults."""

from dataclasses import dataclass

DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """`transaction_version` is the level of the feature transaction.version: 0 writes the old value format, 1
    the flexible one, and with 2 the epoch of a client rises with each transaction."""

    max_timeout_ms: int = 900_000
    expiration_ms: int = 7 * DAY_MS
    expiration_check_ms: int = 3_600_000
    transaction_version: int = 2
