"""What the answers of partition leaders mean for a transaction whose markers are written."""

import logging
from collections.abc import Mapping

from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition

logger = logging.getLogger(__name__)

# The partition has its marker, or has no record of the transaction.
DONE = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})
# A newer producer or coordinator has taken over, so this coordinator must stop.
SUPERSEDED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
# Temporary: a leader moves, replicas are behind, a disk fails.
TEMPORARY = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


def finished(results: Mapping[TopicPartition, ErrorCode]) -> set[TopicPartition]:
    """The partitions that need no marker any more."""
    return {partition for partition, code in results.items() if code in DONE}


def is_superseded(transactional_id: str, results: Mapping[TopicPartition, ErrorCode]) -> bool:
    """Whether to stop writing markers. The transaction then stays as it is until a coordinator loads it
    again.

    An unexpected error is no reason to stop: the end of the transaction is decided, so its marker is written
    again."""
    stops = False
    for partition, code in results.items():
        if code in SUPERSEDED:
            logger.warning("%s refused the marker of %r: %s", partition, transactional_id, code.name)
            stops = True
        elif code not in DONE and code not in TEMPORARY:
            logger.error("cannot write the marker of %r to %s: %s", transactional_id, partition, code.name)
    return stops
