"""One partition's log as the broker sees it: appending, and methods that lead to the other modules.

Synchronous, and owned by one thread."""

from pathlib import Path

from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.batches import CheckedBatch
from barnabas.kernels.log_end import AppendResult
from barnabas.log import (
    healing,
    names,
    reading,
    replica_append,
    retention,
    timestamps,
    transactions,
    truncation,
)
from barnabas.log.flushing import FlushTask
from barnabas.log.reading import LogSlice
from barnabas.log.rebuild import verify
from barnabas.log.scan import CorruptRange
from barnabas.log.segment import Segment
from barnabas.log.state import LogState
from barnabas.log.timestamps import TimestampOffset
from barnabas.log.txn_index import AbortedTransaction
from barnabas.records.builder import Marker, read_marker

LATEST_EPOCH = 2**31 - 1


class Log(LogState):
    """Use `loading.open_log` to get one."""

    # -- appending; append_as_leader is in kernels/log_end.py

    def append_as_follower(self, data: memoryview, leader_epoch: int = LATEST_EPOCH) -> AppendResult:
        """Write batches of a Fetch answer with the offsets and epochs that the leader gave them, up to the
        first that is incomplete, bad, or of an epoch after `leader_epoch`, the leader's. Raises KafkaError or
        UnexpectedOffsetError if the first batch is bad."""
        return replica_append.append_as_follower(self, data, leader_epoch)

    def append_from_start(self, data: memoryview, leader_epoch: int = LATEST_EPOCH) -> None:
        """The same, but an empty log may begin with a batch that holds offsets below its end."""
        replica_append.append_from_start(self, data, leader_epoch)

    def _make_room(self, size: int, first: int, last: int, max_timestamp: int) -> Segment:
        """The segment to append to: a new one if the active one is full or too old."""
        if self.offline:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {self.partition} is offline"
            )
        if size > self.config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {size} bytes does not fit in a segment of {self.config.segment_bytes} bytes",
            )
        if self.active.roll_due(size, last, max_timestamp, self.clock.now_ms()):
            self.roll(first)
        return self.active

    def _checked_marker(self, batch: CheckedBatch) -> Marker | None:
        marker = read_marker(batch.data) if batch.count else None
        if marker is not None:
            self.producers.check_marker(batch, marker)
        return marker

    # -- reading

    def read(self, offset: int, bytes_max: int, *, upper_offset: int, at_least_one: bool) -> LogSlice:
        """A file range that starts with the batch holding `offset` and ends below `upper_offset`."""
        return reading.read(self, offset, bytes_max, upper_offset, at_least_one)

    def upper_bound_of(self, piece: LogSlice) -> int:
        """An offset that every record of the slice is below; for looking up its aborted transactions."""
        return reading.upper_bound_of(self, piece)

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record, in offset order, whose timestamp is at least `timestamp`."""
        return timestamps.offset_for_timestamp(self, timestamp)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the highest timestamp in the log."""
        return timestamps.max_timestamp_offset(self)

    def aborted_transactions(self, from_offset: int, upto_offset: int) -> list[AbortedTransaction]:
        return transactions.aborted_transactions(self, from_offset, upto_offset)

    def verify(self, segment: Segment) -> list[CorruptRange]:
        """Check every batch of a segment, which a fetch does not do. Damaged batches are marked, and fetches
        of them fail from now on."""
        try:
            if verify(segment):
                self.save_corrupt_ranges()
        except OSError as problem:
            raise self.storage_error(problem) from problem
        return segment.bad

    def check_batch_at(self, offset: int) -> bool:
        """Check the batch that holds `offset`; True if it is damaged and was not known to be."""
        try:
            return healing.check_batch_at(self, offset)
        except OSError as problem:
            raise self.storage_error(problem) from problem

    def replace_damage(self, corrupt: CorruptRange, data: memoryview) -> bool:
        """Write the bytes that another replica has for a damaged range; False if they do not fit."""
        return healing.replace_damage(self, corrupt, data)

    # -- removing

    def truncate_to(self, offset: int) -> bool:
        """Remove everything from `offset` on; False if the log ends there or earlier."""
        return truncation.truncate_to(self, offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        truncation.truncate_fully_and_start_at(self, offset)

    def delete_records_before(self, offset: int) -> bool:
        """Move the log start up; OFFSET_OUT_OF_RANGE above the high watermark."""
        return retention.advance_log_start(self, offset)

    def apply_retention(self, now_ms: int) -> int:
        """Delete segments that are too old, too large together, or below the log start; returns how many."""
        return retention.apply_retention(self, now_ms)

    # -- ending

    def close(self) -> None:
        """Write everything to disk, so that the next start needs no recovery."""
        task = self.plan_close()
        if task is not None:
            problem = task.problem()
            if problem is not None:
                raise self.flush_failed(problem) from problem
            self.finish_flush(task)
        self.abandon()

    def plan_close(self) -> FlushTask | None:
        """Write everything except for a flush, which is returned. After the flush the log can be abandoned.

        Only the records are synced: an index is checked when it is used, and a snapshot has a checksum."""
        if self.offline:
            return None
        if self.log_end_offset > self.log_start_offset:
            self.producers.take_snapshot(self.log_end_offset)
        try:
            task = self.plan_flush() if self.unflushed else None
            self.active.finish()
        except OSError as problem:
            raise self.storage_error(problem) from problem
        return task

    def abandon(self) -> None:
        """Close the files without writing anything, as if the process were killed."""
        self.closed = True
        self.go_offline()
        for segment in self.segments:
            segment.release()

    def delete(self) -> Path:
        """Rename the directory; its content is removed after file.delete.delay.ms.

        The caller syncs the directory above it, so that a power failure does not undo the renaming."""
        target = self.directory.with_name(names.delete_directory_name(self.partition))
        self.leader_epochs.retire()
        try:
            self.disk.rename(self.directory, target)
        except OSError as problem:
            raise self.storage_error(problem) from problem
        self.abandon()
        self.trash.forget_below(self.directory)
        self.trash.add_directory(target, self.config.file_delete_delay_ms)
        return target
