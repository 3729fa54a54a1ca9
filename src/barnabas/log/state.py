"""The state of one partition's log and the rules that keep it consistent: rolling, flushing, going offline.

Reading, loading, retention and truncation are modules of functions on this state; `log.Log` adds appending
and is what the rest of the broker uses. A failed write leaves the log as it was. If the disk is full, the
answer is KAFKA_STORAGE_ERROR and the next append tries again; any other failure takes the log offline."""

import errno
import logging
import random
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition, Uuid
from barnabas.kernels.log_end import LogEnd
from barnabas.log import names
from barnabas.log.checkpoints import write_checkpoint
from barnabas.log.disk import Disk
from barnabas.log.flushing import FlushTask, NotBegunError
from barnabas.log.leader_epochs import EpochEntry, LeaderEpochs
from barnabas.log.producer_state import ProducerState, aborted_transaction
from barnabas.log.producers import ProducerFields
from barnabas.log.scan import CorruptRange
from barnabas.log.segment import Segment
from barnabas.log.stored_segment import LONG_MAX
from barnabas.log.trash import Trash
from barnabas.records.builder import Marker

logger = logging.getLogger(__name__)

# These errors can go away: space can be freed on a full disk, and closed connections free descriptors. The
# log stays online and goes on when they have.
TEMPORARY_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE})


class Identity(NamedTuple):
    """Which partition a log is for, and its directory."""

    directory: Path
    partition: TopicPartition
    topic_id: Uuid | None


def _ignore_truncation(log: "LogState", offset: int) -> None:
    """Nobody has to know."""


class Services(NamedTuple):
    """What a log needs from outside. `on_failure` is called when the log goes offline, `on_truncation` when
    its records from an offset on were removed."""

    disk: Disk
    clock: Clock
    trash: Trash
    on_failure: Callable[["LogState", OSError], None]
    on_truncation: Callable[["LogState", int], None] = _ignore_truncation


class LogState(LogEnd):
    segments: list[Segment]
    leader_epochs: LeaderEpochs
    producers: ProducerState

    def __init__(
        self,
        identity: Identity,
        services: Services,
        config: TopicConfig,
        epochs: LeaderEpochs,
        producers: ProducerState,
    ) -> None:
        self.directory, self.partition, self.topic_id = identity
        self.disk = services.disk
        self.clock = services.clock
        self.trash = services.trash
        self._on_failure = services.on_failure
        self.on_truncation = services.on_truncation
        self.config = config
        self.leader_epochs = epochs
        self.producers = producers
        self.segments = []
        self.bases: list[int] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.last_flush_ms = services.clock.now_ms()
        # Whether any segment has bad bytes, so that reads of other logs need not look for them.
        self.damaged = False
        self.offline = False
        self.closed = False
        # False on a follower, whose log start follows that of its leader.
        self.applies_retention = True
        # Called when the log goes offline, so that nobody goes on using it.
        self.when_offline: Callable[[], None] | None = None
        self.update_flush_limit()

    def __repr__(self) -> str:
        return f"Log({self.partition}, {self.log_start_offset}..{self.log_end_offset}, {self.directory})"

    # -- contents

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def corrupt_ranges(self) -> list[CorruptRange]:
        return [corrupt for segment in self.segments for corrupt in segment.bad]

    @property
    def starts_inside_a_segment(self) -> bool:
        """Whether the log start needs a checkpoint; otherwise it is the base offset of the first segment."""
        return self.log_start_offset > self.bases[0]

    def segment_for(self, offset: int) -> int:
        """The position in `segments` of the segment that may hold `offset`."""
        return max(0, bisect_right(self.bases, offset) - 1)

    def first_unstable_offset(self) -> int | None:
        first = self.producers.first_unstable_offset()
        return None if first is None else max(first, self.log_start_offset)

    @property
    def last_stable_offset(self) -> int:
        """Below this offset every transaction is ended and replicated. Never above the high watermark."""
        first = self.first_unstable_offset()
        return self.high_watermark if first is None else min(first, self.high_watermark)

    def epoch_at(self, offset: int) -> int:
        return self.leader_epochs.epoch_at(offset)

    def end_offset_for_epoch(self, epoch: int) -> EpochEntry:
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    # -- transactions

    def record_marker(
        self, batch: ProducerFields, marker: Marker | None, offset: int, segment: Segment
    ) -> None:
        """A control batch was appended; `marker` is None if it ends no transaction."""
        completed = self.producers.record_marker(batch, marker, offset) if marker else None
        if completed is not None and completed[0].aborted:
            segment.txn_index.append(aborted_transaction(*completed))

    # -- settings

    def update_config(self, config: TopicConfig) -> None:
        self.config = config
        self.update_flush_limit()
        for segment in self.segments:
            segment.index_interval = config.index_interval_bytes
        self.active.set_limits(config.segment_bytes, self._roll_ms())

    # -- rolling

    def roll(self, base_offset: int | None = None) -> Segment:
        """Create a new active segment at the end of the log, or at `base_offset` if a follower skips
        offsets."""
        base = self.log_end_offset if base_offset is None else base_offset
        old = self.active
        if base == old.base_offset and old.size == 0:
            return old
        try:
            new = self.new_segment(base)
            old.finish()
        except OSError as problem:
            # Remove the new files: the old segment may still get the offsets that they would claim.
            with suppress(OSError):
                for suffix in names.SEGMENT_SUFFIXES:
                    self.disk.unlink(names.segment_file(self.directory, base, suffix))
            raise self.storage_error(problem) from problem
        old.next_offset = base
        self.producers.take_snapshot(base)
        self.add_segment(new)
        return new

    def maybe_roll(self, now_ms: int) -> bool:
        """Roll a segment that is older than segment.ms even if nothing is appended."""
        first = self.active.first_timestamp
        since = first if first is not None and first >= 0 else self.active.created_ms
        if self.active.size == 0 or now_ms - since <= self.active.roll_ms:
            return False
        self.roll()
        return True

    def new_segment(self, base_offset: int) -> Segment:
        segment = Segment(self.disk, self.directory, base_offset, self.config, self.clock.now_ms())
        segment.roll_ms = self._roll_ms()
        # The first flush of the segment syncs the directory.
        segment.create(preallocate=self.config.preallocate)
        return segment

    def add_segment(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.bases.append(segment.base_offset)

    def set_segments(self, segments: list[Segment]) -> None:
        self.segments = segments
        self.bases = [segment.base_offset for segment in segments]

    def _roll_ms(self) -> int:
        config = self.config
        limit = (
            min(config.segment_ms, config.max_compaction_lag_ms)
            if config.cleanup_compact
            else config.segment_ms
        )
        jitter = min(config.segment_jitter_ms, limit)
        return limit - (random.randrange(jitter) if jitter > 0 else 0)

    def release_idle(self) -> None:
        """Close the files of segments that nobody has used since the last call."""
        for segment in self.segments:
            if not segment.was_used():
                segment.close_files()

    # -- flushing

    @property
    def unflushed(self) -> int:
        """How many offsets could be lost in a power failure."""
        return self.log_end_offset - self.recovery_point

    def plan_flush(self, upto: int | None = None) -> FlushTask:
        """What has to be synced so that everything below `upto` (default: everything) survives a power
        failure."""
        upto = self.log_end_offset if upto is None else upto
        start = self.segment_for(self.recovery_point)
        files = []
        try:
            for segment in self.segments[start:]:
                if segment.base_offset < upto or upto == self.log_end_offset:
                    if segment.active:
                        segment.write_indexes()
                    files += segment.handles()
        except OSError as problem:
            raise self.storage_error(problem) from problem
        return FlushTask(self.disk, self.directory, upto, files, self.leader_epochs.unsaved())

    def finish_flush(self, task: FlushTask) -> None:
        if task.upto > self.recovery_point:
            self.recovery_point = min(task.upto, self.log_end_offset)
        self.update_flush_limit()
        self.last_flush_ms = self.clock.now_ms()

    def flush_due(self, now_ms: int) -> int | None:
        """The offset up to which the log should be flushed now, or None.

        After flush.ms everything is due. Before that rolled segments are due, to limit the work of a
        recovery."""
        if self.unflushed and now_ms - self.last_flush_ms >= self.config.flush_ms:
            return self.log_end_offset
        return self.active.base_offset if self.active.base_offset > self.recovery_point else None

    def update_flush_limit(self) -> None:
        """The recovery point or flush.messages changed: compute at which offset an append must flush."""
        self.flush_at = min(self.recovery_point + self.config.flush_messages - 1, LONG_MAX)

    def flush(self, upto: int | None = None) -> None:
        task = self.plan_flush(upto)
        try:
            task.run()
        except OSError as problem:
            raise self.flush_failed(problem) from problem
        self.finish_flush(task)

    def flush_failed(self, problem: OSError) -> KafkaError:
        """A failed fsync is fatal: the kernel may have dropped the pages, and another fsync would succeed
        without them."""
        return self.storage_error(problem, fatal=not isinstance(problem, NotBegunError))

    # -- failures

    def go_offline(self) -> None:
        """Serve nobody any more."""
        self.offline = True
        if self.when_offline is not None:
            self.when_offline()

    @staticmethod
    def is_temporary(problem: OSError) -> bool:
        return problem.errno in TEMPORARY_ERRORS

    def storage_error(self, problem: OSError, *, fatal: bool = False) -> KafkaError:
        """Take the log offline unless the failure is temporary; returns the error for the caller to raise."""
        if fatal or not self.is_temporary(problem):
            self.go_offline()
            self._on_failure(self, problem)
        logger.error("%s: %s", self.partition, problem)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.partition}: {problem.strerror or problem}")

    def save_corrupt_ranges(self) -> None:
        """Store the list of damaged ranges: after a clean stop the log is not read again."""
        ranges = self.corrupt_ranges
        self.damaged = bool(ranges)
        path = self.directory / names.CORRUPT_RANGES
        if ranges:
            write_checkpoint(self.disk, path, (" ".join(map(str, corrupt)) for corrupt in ranges))
        else:
            self.disk.unlink(path)
