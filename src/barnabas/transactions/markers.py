"""What the answers of partition leaders mean for a transaction whose markers are being written."""

import logging
from collections.abc import Mapping

from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition

logger = logging.getLogger(__name__)

# The partition has its marker, or never took a record of the transaction.
DONE = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})
# Somebody newer has taken over; what this coordinator has to say no longer counts.
SUPERSEDED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
# Passes by itself: a leader moves, replicas catch up, a disk comes back.
PASSING = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


def told(results: Mapping[TopicPartition, ErrorCode]) -> set[TopicPartition]:
    """The partitions that need no marker any more."""
    return {partition for partition, code in results.items() if code in DONE}


def is_superseded(transactional_id: str, results: Mapping[TopicPartition, ErrorCode]) -> bool:
    """Whether to stop writing; the transaction then stays as it is until a coordinator loads it anew.

    An answer that makes no sense is no reason to stop: the outcome is decided, so it is written again."""
    stops = False
    for partition, code in results.items():
        if code in SUPERSEDED:
            logger.warning("the marker of %r is refused by %s: %s", transactional_id, partition, code.name)
            stops = True
        elif code not in DONE and code not in PASSING:
            logger.error("the marker of %r failed at %s: %s", transactional_id, partition, code.name)
    return stops
