"""The exceptions that the clients raise; each class says when. All of them are a KafkaError, except
WakeupError, ConcurrentAccessError and ClosedError: handlers of KafkaError do not catch these."""

from collections.abc import Callable, Mapping

from barnabas.config.definition import ConfigError
from barnabas.errors import (
    AuthenticationError,
    ClosedError,
    DisconnectedError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
    error_of,
)
from barnabas.ids import TopicPartition

__all__ = [
    "AuthenticationError",
    "ClosedError",
    "CommitFailedError",
    "ConcurrentAccessError",
    "ConfigError",
    "DisconnectedError",
    "ErrorCode",
    "KafkaError",
    "KafkaTimeoutError",
    "LogTruncationError",
    "NoOffsetForPartitionError",
    "OffsetOutOfRangeError",
    "OutOfOrderSequenceError",
    "ProducerFencedError",
    "RebalanceInProgressError",
    "RetriableCommitFailedError",
    "SerializationError",
    "TransactionAbortableError",
    "UnsupportedVersionError",
    "WakeupError",
    "error_from",
    "raise_for",
]


class SerializationError(KafkaError):
    """A serializer or deserializer failed on a record."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_RECORD) -> None:
        super().__init__(code, message)


class CommitFailedError(KafkaError):
    """Another member has the partitions; the offsets are not committed, and trying again does not help."""

    def __init__(self, message: str | None = None, code: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        super().__init__(code, message)


class RebalanceInProgressError(KafkaError):
    """The group is rebalancing: call poll() to finish it, then commit again."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.REBALANCE_IN_PROGRESS, message)


class RetriableCommitFailedError(KafkaError):
    """The offsets are not committed; trying again may help."""

    def __init__(
        self, message: str | None = None, code: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE
    ) -> None:
        super().__init__(code, message)

    @property
    def retriable(self) -> bool:
        return True


class NoOffsetForPartitionError(KafkaError):
    """No offset is committed for `partitions`, and auto.offset.reset is none."""

    def __init__(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.partitions = partitions
        named = ", ".join(map(str, partitions))
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"No offset is committed for {named}, and auto.offset.reset is none.",
        )


class OffsetOutOfRangeError(KafkaError):
    """The positions in `offsets` no longer exist, and auto.offset.reset is none."""

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.offsets = dict(offsets)
        named = ", ".join(f"{offset} of {partition}" for partition, offset in offsets.items())
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"The log does not hold {named}, and auto.offset.reset is none."
        )


class LogTruncationError(KafkaError):
    """The log was truncated before the position: some records that were read are gone.

    `offsets`: our positions; `divergent`: the first offsets where the log differs from the records read, if
    known."""

    def __init__(
        self, offsets: Mapping[TopicPartition, int], divergent: Mapping[TopicPartition, int]
    ) -> None:
        self.offsets = dict(offsets)
        self.divergent = dict(divergent)
        named = ", ".join(map(str, offsets))
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"The log of {named} was truncated before the position."
        )


class ProducerFencedError(KafkaError):
    """A newer producer uses the transactional id: close this one."""

    def __init__(self, message: str | None = None, code: ErrorCode = ErrorCode.PRODUCER_FENCED) -> None:
        super().__init__(code, message)


class TransactionAbortableError(KafkaError):
    """The transaction must be aborted; then the producer can be used again."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.TRANSACTION_ABORTABLE, message)


class OutOfOrderSequenceError(KafkaError):
    """An earlier batch was lost."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)


class WakeupError(Exception):
    """wakeup() was called; it ends the call that was waiting."""


class ConcurrentAccessError(RuntimeError):
    """A consumer was used by two threads at the same time."""


_CLASSES: dict[ErrorCode, Callable[[str | None], KafkaError]] = {
    ErrorCode.REQUEST_TIMED_OUT: KafkaTimeoutError,
    ErrorCode.NETWORK_EXCEPTION: DisconnectedError,
    ErrorCode.UNSUPPORTED_VERSION: UnsupportedVersionError,
    ErrorCode.SASL_AUTHENTICATION_FAILED: AuthenticationError,
    ErrorCode.PRODUCER_FENCED: ProducerFencedError,
    ErrorCode.REBALANCE_IN_PROGRESS: RebalanceInProgressError,
    ErrorCode.TRANSACTION_ABORTABLE: TransactionAbortableError,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: OutOfOrderSequenceError,
}


def error_from(number: int, message: str | None = None) -> KafkaError:
    """The exception for an error code of a broker, of the most specific class. An empty message means
    none."""
    code = error_of(number)
    kind = _CLASSES.get(code)
    return KafkaError(code, message or None) if kind is None else kind(message or None)


def raise_for(number: int, message: str | None = None) -> None:
    """Raise the exception for the error_code of a response; 0 means no error."""
    if number != 0:
        raise error_from(number, message)
