"""What the coordinator can be told by configuration."""

from dataclasses import dataclass

DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """`transaction_version` is the level of the feature transaction.version: 0 writes the old value format,
    1 the flexible one, 2 lets clients bump their epoch with each transaction."""

    max_timeout_ms: int = 900_000
    expiration_ms: int = 7 * DAY_MS
    expiration_check_ms: int = 3_600_000
    transaction_version: int = 2
