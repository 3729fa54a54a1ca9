"""What the clients raise, beyond the errors brokers answer with. All of it is a KafkaError.

KafkaError                     any error with a Kafka code; `error.retriable`: trying again may help
├── KafkaTimeoutError          the method's time is over (also a TimeoutError)
├── DisconnectedError          the connection broke before the answer came; retriable
├── UnsupportedVersionError    the broker does not speak the request, or not in a version we do
├── ConfigError                a wrong setting
├── SerializationError         a serializer or deserializer failed on a record
├── CommitFailedError          the group has given the partitions to another member; the commit is void
├── RebalanceInProgressError   the group is in a round: poll() finishes it, then commit again
├── RetriableCommitFailedError the commit did not get through and may be tried again
├── NoOffsetForPartitionError  no committed offset, and auto.offset.reset is none
├── OffsetOutOfRangeError      the position does not exist any more, and auto.offset.reset is none
├── LogTruncationError         the log was cut behind the position: records read are gone
├── ProducerFencedError        a newer producer uses the transactional id; this one is finished
├── TransactionAbortableError  the transaction must be aborted; the producer can go on afterwards
└── OutOfOrderSequenceError    a batch before this one was lost
WakeupError                    wakeup() was called during a poll; no KafkaError, lest a handler eat it
ConcurrentAccessError          a consumer was used from two threads at once
ClosedError                    the client was closed"""

from collections.abc import Callable, Mapping

from barnabas.config.definition import ConfigError
from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.ids import TopicPartition

__all__ = [
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


class KafkaTimeoutError(KafkaError, TimeoutError):
    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class DisconnectedError(KafkaError):
    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class UnsupportedVersionError(KafkaError):
    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, message)


class SerializationError(KafkaError):
    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_RECORD) -> None:
        super().__init__(code, message)


class CommitFailedError(KafkaError):
    def __init__(self, message: str | None = None, code: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        super().__init__(code, message)


class RebalanceInProgressError(KafkaError):
    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.REBALANCE_IN_PROGRESS, message)


class RetriableCommitFailedError(KafkaError):
    def __init__(
        self, message: str | None = None, code: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE
    ) -> None:
        super().__init__(code, message)

    @property
    def retriable(self) -> bool:
        return True


class NoOffsetForPartitionError(KafkaError):
    def __init__(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.partitions = partitions
        named = ", ".join(map(str, partitions))
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"No offset is committed for {named}, and auto.offset.reset is none.",
        )


class OffsetOutOfRangeError(KafkaError):
    """`offsets` holds the positions that do not exist."""

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.offsets = dict(offsets)
        named = ", ".join(f"{offset} of {partition}" for partition, offset in offsets.items())
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"The log does not hold {named}, and auto.offset.reset is none."
        )


class LogTruncationError(KafkaError):
    """`offsets`: where we stood; `divergent`: where the log parts from what was read (absent: unknown)."""

    def __init__(
        self, offsets: Mapping[TopicPartition, int], divergent: Mapping[TopicPartition, int]
    ) -> None:
        self.offsets = dict(offsets)
        self.divergent = dict(divergent)
        named = ", ".join(map(str, offsets))
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, f"The log of {named} was cut behind the position.")


class ProducerFencedError(KafkaError):
    def __init__(self, message: str | None = None, code: ErrorCode = ErrorCode.PRODUCER_FENCED) -> None:
        super().__init__(code, message)


class TransactionAbortableError(KafkaError):
    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.TRANSACTION_ABORTABLE, message)


class OutOfOrderSequenceError(KafkaError):
    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)


class WakeupError(Exception):
    """Somebody called wakeup(); the call that was waiting ends with this."""


class ConcurrentAccessError(RuntimeError):
    """A consumer belongs to one thread at a time."""


class ClosedError(RuntimeError):
    """The client was closed and cannot be used any more."""


_CLASSES: dict[ErrorCode, Callable[[str | None], KafkaError]] = {
    ErrorCode.REQUEST_TIMED_OUT: KafkaTimeoutError,
    ErrorCode.NETWORK_EXCEPTION: DisconnectedError,
    ErrorCode.UNSUPPORTED_VERSION: UnsupportedVersionError,
    ErrorCode.PRODUCER_FENCED: ProducerFencedError,
    ErrorCode.REBALANCE_IN_PROGRESS: RebalanceInProgressError,
    ErrorCode.TRANSACTION_ABORTABLE: TransactionAbortableError,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: OutOfOrderSequenceError,
}


def error_from(number: int, message: str | None = None) -> KafkaError:
    """The error a broker's number stands for, as the most precise class; an empty message is none."""
    code = error_of(number)
    kind = _CLASSES.get(code)
    return KafkaError(code, message or None) if kind is None else kind(message or None)


def raise_for(number: int, message: str | None = None) -> None:
    """Raise what a response's error_code stands for; 0 is fine."""
    if number != 0:
        raise error_from(number, message)
