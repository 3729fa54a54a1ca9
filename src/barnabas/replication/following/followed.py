"""One partition that is fetched from its leader: what to ask for, and what to do with the answer.

It is made for one leader and one leader epoch. When either changes, another one takes its place, so an answer
that comes late finds nobody who takes it. Synchronous: each answer is taken in one turn of the loop."""

import logging
from enum import Enum, auto
from typing import TypeAlias

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.ids import Uuid
from barnabas.log.errors import UnexpectedOffsetError
from barnabas.replication.following.ports import LogBounds
from barnabas.replication.following.truncation import offset_to_keep
from barnabas.replication.partition import Partition
from barnabas.wire.messages.fetch import EpochEndOffset, FetchPartition, PartitionData

logger = logging.getLogger(__name__)

# The id of the topic, and the partition's index: a topic that is deleted and created again has another id.
PartitionKey: TypeAlias = tuple[Uuid, int]

UNKNOWN_LAG = -1
NEVER = float("inf")
FIRST_PAUSE_SECONDS = 0.02
# So many failures in a row are logged. After elections there are some on many partitions, and they end soon.
LOGGED_FAILURES = 5


class Outcome(Enum):
    """What is next after an answer."""

    UNCHANGED = auto()
    # The log has changed: the next request says so to the leader.
    MOVED = auto()
    SET_ASIDE = auto()
    # The leader's log does not have the offset that was asked for.
    OUT_OF_RANGE = auto()


class Followed:
    """`retry_at`: not fetched before this time of the monotonic clock. `problem`: why it is set aside."""

    def __init__(self, partition: Partition, backoff_seconds_max: float) -> None:
        self.partition = partition
        self.key: PartitionKey = (partition.topic_id, partition.topic_partition.partition)
        self.leader_id = partition.leader
        self.leader_epoch: int = partition.leader_epoch
        self.is_requested = False
        self.retry_at = 0.0
        self.failures = 0
        self.problem: str | None = None
        # How far the log is behind the leader's high watermark.
        self.lag = UNKNOWN_LAG
        self._backoff_seconds_max = backoff_seconds_max

    def __repr__(self) -> str:
        return f"Followed({self.partition.topic_partition}, leader={self.leader_id})"

    def request(self, bytes_max: int) -> FetchPartition:
        log = self.partition.log
        return FetchPartition(
            partition=self.key[1],
            current_leader_epoch=self.leader_epoch,
            fetch_offset=log.log_end_offset,
            last_fetched_epoch=log.leader_epochs.latest,
            log_start_offset=log.log_start_offset,
            partition_max_bytes=bytes_max,
        )

    # ---- answers

    def take(self, answer: PartitionData, now: float) -> Outcome:
        """Take the leader's answer. Whatever fails concerns this partition only: it is set aside."""
        try:
            outcome = self._take(answer, now)
        except Exception as error:
            return self._failed(error, now)
        if outcome is not Outcome.SET_ASIDE:
            self.failures, self.problem = 0, None
        return outcome

    def take_records(
        self, records: memoryview, high_watermark: int, log_start_offset: int, clock: Clock
    ) -> Outcome:
        """Take an answer that has nothing but these, without the message around them."""
        try:
            outcome = self._append(records, high_watermark, log_start_offset)
        except Exception as error:
            return self._failed(error, clock.monotonic())
        self.failures, self.problem = 0, None
        return outcome

    def _failed(self, error: Exception, now: float) -> Outcome:
        if isinstance(error, KafkaError | UnexpectedOffsetError):
            return self.set_aside(str(error), now)
        logger.exception("%s could not take an answer of its leader", self)
        return self.set_aside(repr(error), now)

    def _take(self, answer: PartitionData, now: float) -> Outcome:
        code = answer.error_code
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return Outcome.OUT_OF_RANGE
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            # There is a newer epoch, and this broker is about to learn it from the metadata.
            self.set_aside("waiting for newer metadata", now)
            self.retry_at = NEVER
            return Outcome.SET_ASIDE
        if code != ErrorCode.NONE:
            return self.set_aside(f"the leader answered {error_of(code).name}", now)
        if answer.diverging_epoch.epoch >= 0:
            return self._truncate(answer.diverging_epoch, now)
        records = answer.records or b""
        if not isinstance(records, bytes | bytearray | memoryview):
            raise TypeError("the records of a leader must be bytes")
        return self._append(memoryview(records), answer.high_watermark, answer.log_start_offset)

    def _truncate(self, diverging: EpochEndOffset, now: float) -> Outcome:
        log = self.partition.log
        before = (log.log_end_offset, log.leader_epochs.latest)
        offset = offset_to_keep(log, diverging.epoch, diverging.end_offset)
        if offset < log.log_end_offset:
            logger.info(
                "%s: truncating from %d to %d, where epoch %d of the leader ends at %d; the high watermark "
                "is %d",
                self.partition.topic_partition,
                log.log_end_offset,
                offset,
                diverging.epoch,
                diverging.end_offset,
                log.high_watermark,
            )
        # Also if no records are removed: an epoch without records may contradict the leader.
        log.truncate_to(offset)
        if before == (log.log_end_offset, log.leader_epochs.latest):
            return self.set_aside("the leader's epochs contradict this log, but nothing can be cut off", now)
        return Outcome.MOVED

    def _append(self, records: memoryview, high_watermark: int, log_start_offset: int) -> Outcome:
        log = self.partition.log
        old_start, old_end = log.log_start_offset, log.log_end_offset
        if records:
            log.append_from_start(records, self.leader_epoch)
        self.partition.raise_high_watermark(high_watermark)
        if log_start_offset > log.log_start_offset:
            log.delete_records_before(min(log_start_offset, log.high_watermark))
        self.lag = max(0, high_watermark - log.log_end_offset)
        has_moved = old_end != log.log_end_offset or old_start != log.log_start_offset
        return Outcome.MOVED if has_moved else Outcome.UNCHANGED

    def take_bounds(self, bounds: LogBounds, now: float) -> Outcome:
        """The fetch offset was not in the leader's log, which has these bounds."""
        log = self.partition.log
        try:
            if bounds.end_offset < log.log_end_offset:
                logger.warning(
                    "%s: the leader's log ends at %d, before this one at %d; truncating",
                    self.partition.topic_partition,
                    bounds.end_offset,
                    log.log_end_offset,
                )
                log.truncate_to(bounds.end_offset)
            elif bounds.start_offset > log.log_end_offset:
                logger.warning(
                    "%s: the leader's log begins at %d, after the end of this one at %d; starting there",
                    self.partition.topic_partition,
                    bounds.start_offset,
                    log.log_end_offset,
                )
                log.truncate_fully_and_start_at(bounds.start_offset)
            else:
                return self.set_aside("the leader has the offset now that was out of range", now)
        except KafkaError as error:
            return self.set_aside(str(error), now)
        return Outcome.MOVED

    # ---- failures

    def set_aside(self, problem: str, now: float) -> Outcome:
        """Fetch this partition again after a pause, which grows from failure to failure."""
        self.problem = problem
        pause = min(FIRST_PAUSE_SECONDS * 2 ** min(self.failures, 20), self._backoff_seconds_max)
        self.failures += 1
        if self.failures == LOGGED_FAILURES:
            logger.warning("%s: cannot be fetched: %s", self.partition.topic_partition, problem)
        self.retry_at = NEVER if self.partition.log.offline else now + pause
        return Outcome.SET_ASIDE
