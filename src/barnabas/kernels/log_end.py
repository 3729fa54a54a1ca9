"""The end of a log, where batches are appended: the numbers that every append reads and changes, kept as C
keeps them, and what an append does with them.

Four classes are built on these four and see the numbers as attributes: log.index.SparseIndex,
log.segment.Segment, log.state.LogState and replication.partition.Partition. What is rare (opening a file,
rolling, writing index entries, a failure) is done there, in methods that are called here by name.

The fields of the C classes are declared in log_end.pxd, so that other kernels reach them with C's speed."""

import errno
import os
import struct

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.batches import CheckedBatch
else:
    from barnabas.kernels.batches import CheckedBatch

# The start of a batch: base offset, length after these two, leader epoch. None of it is in the CRC.
_START = struct.Struct(">qii")
# This many index entries are collected before they are written.
WRITE_CHUNK_ENTRIES = 512

CONTROL_FLAG = cython.declare(cython.int, 0x20)
LOG_APPEND_TIME_FLAG = cython.declare(cython.int, 0x08)


@cython.cclass
class IndexEnd:
    """The index entries of the active segment, which are in memory: an array of keys and one of values. The
    index of an inactive segment has none in memory."""

    @cython.ccall
    def append(self, key: cython.longlong, value: cython.longlong) -> cython.longlong:
        """Add an entry and return how many there are now."""
        if self._keys is None:
            raise RuntimeError(f"{self} is not active")
        self._keys.append(key)
        self._values.append(value)
        count: cython.longlong = len(self._keys)
        if count - self._written >= WRITE_CHUNK_ENTRIES:
            self._write_chunk()
        return count

    @cython.ccall
    def last_key(self) -> cython.longlong:
        """The key of the last entry of an active index, -1 if it has none."""
        return self._keys[-1] if self._keys else -1


@cython.cclass
class SegmentEnd:
    """The file of the active segment and how far it is filled."""

    @cython.ccall
    def append(
        self, data: object, last_offset: cython.longlong, max_timestamp: cython.longlong
    ) -> cython.longlong:
        """Write one batch at the end, index it and return its position. If it fails, nothing has changed."""
        position: cython.longlong = self.size
        size: cython.longlong = len(data)
        self.write_at_end(data)
        self.size = position + size
        self.next_offset = last_offset + 1
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self._bytes_since_index > self.index_interval:
            self.add_entry(last_offset, position)
        self._bytes_since_index += size
        if position == 0:
            self._start_roll_timer(max_timestamp)
        return position

    @cython.ccall
    def write_at_end(self, data: object) -> object:
        """Write bytes at the end of the file; the caller counts them. If it fails, nothing has changed."""
        position: cython.longlong = self.size
        size: cython.longlong = len(data)
        if self._fd < 0:
            self._open_file()
        try:
            written: cython.longlong = self._pwrite(self._fd, data, position)
        except OSError:
            self._cut_back(position)
            raise
        if written != size:
            self._cut_back(position)
            raise OSError(
                errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {written} of {size} bytes were written"
            )

    @cython.ccall
    def add_entry(self, last_offset: cython.longlong, position: cython.longlong) -> object:
        """Add the batch at `position` to the indexes; it has the highest timestamp so far or a lower one."""
        if self.index.append(last_offset - self.base_offset, position) >= self.index.entries_max:
            self.size_limit = 0
        self.add_time_entry()
        self._bytes_since_index = 0

    @cython.ccall
    def add_time_entry(self) -> object:
        """Add the highest timestamp to the time index unless it is there already."""
        times: IndexEnd = self.time_index
        if self.active and self.max_timestamp > times.last_key():
            entries = times.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
            if entries >= times.entries_max - 1:
                self.size_limit = 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _has_room(
        self, size: cython.longlong, last_offset: cython.longlong, max_timestamp: cython.longlong
    ) -> cython.bint:
        return (
            size <= self.size_limit - self.size
            and max_timestamp <= self.timestamp_limit
            and last_offset <= self.offset_limit
        )


@cython.freelist(4)
@cython.cclass
class AppendResult:
    """Where a batch is in the log. `log_append_time` is -1 unless the broker sets the timestamps."""

    def __init__(
        self,
        first_offset: cython.longlong,
        last_offset: cython.longlong,
        log_append_time: cython.longlong,
        log_start_offset: cython.longlong,
        duplicate: cython.bint,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time = log_append_time
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate


@cython.cclass
class LogEnd:
    """The offsets of a log and its segments, the last of which is active.

    The append of `flush_at` or any later offset has to flush."""

    @cython.ccall
    def append_as_leader(
        self, batch: CheckedBatch, leader_epoch: cython.longlong, from_client: cython.bint = True
    ) -> AppendResult:
        """Give the batch its offsets and write it; a repeat of an earlier batch only gets that one's offsets.

        Coordinators (`from_client` is false) send no sequence numbers. If this fails before anything was
        written, the batch is as it came."""
        first: cython.longlong = self.log_end_offset
        last: cython.longlong = first + batch.last_offset_delta
        has_producer: cython.bint = batch.producer_id >= 0
        is_marker: cython.bint = has_producer and (batch.attributes & CONTROL_FLAG) != 0
        marker = None
        if is_marker:
            marker = self._checked_marker(batch)
        elif has_producer:
            known = self.producers.check_batch(batch, from_client)
            if known is not None:
                return AppendResult(
                    known.first_offset, known.last_offset, known.timestamp, self.log_start_offset, True
                )
        try:
            segment = self.write_next(batch.data, last, batch.max_timestamp, leader_epoch)
        except Exception:
            if has_producer and not is_marker:
                self.producers.refuse(batch)
            raise
        if is_marker:
            self.record_marker(batch, marker, first, segment)
        elif has_producer:
            self.producers.record_batch(batch, first)
        if last >= self.flush_at:
            self.flush()
        result: AppendResult = AppendResult.__new__(AppendResult)
        result.first_offset = first
        result.last_offset = last
        result.log_append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME_FLAG else -1
        result.log_start_offset = self.log_start_offset
        result.duplicate = False
        return result

    @cython.ccall
    def write_next(
        self,
        data: object,
        last_offset: cython.longlong,
        max_timestamp: cython.longlong,
        leader_epoch: cython.longlong,
    ) -> object:
        """Give a batch the next offsets, write it and return the segment it was written to."""
        try:
            if leader_epoch > self.leader_epochs.latest:
                self.leader_epochs.assign(leader_epoch, self.log_end_offset)
            segment: SegmentEnd = self.segments[-1]
            if self.offline or not segment._has_room(len(data), last_offset, max_timestamp):
                segment = self._make_room(len(data), self.log_end_offset, last_offset, max_timestamp)
            _START.pack_into(data, 0, self.log_end_offset, len(data) - 12, leader_epoch)
            segment.append(data, last_offset, max_timestamp)
        except OSError as problem:
            # As it came: base offset 0, no leader epoch.
            _START.pack_into(data, 0, 0, len(data) - 12, -1)
            raise self.storage_error(problem) from problem
        self.log_end_offset = last_offset + 1
        return segment

    @cython.ccall
    def update_high_watermark(self, offset: cython.longlong) -> object:
        """Take over how far the log is replicated, which the partition knows."""
        self.high_watermark = offset
        if self.producers.unreplicated:
            self.producers.forget_replicated(offset)


@cython.cclass
class Permit:
    """Leave to read or write a partition under its present leader, in-sync set and config.

    The gate (replication/gate.py) gives it to those who may have it. When any of these changes, the partition
    withdraws it: then `partition` is None, and the holder of the permit has to ask the gate again.

    `commits_at_once`: no other replica is in sync, so what is appended is committed.
    `plain_rules`: for check_plain; None if the topic changes the batches that it gets.
    `stores_zstd`: the topic compresses with zstd, which clients that are too old cannot read."""

    def __init__(
        self,
        partition: object,
        leader_epoch: cython.longlong,
        commits_at_once: cython.bint,
        plain_rules: object,
        stores_zstd: cython.bint,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.commits_at_once = commits_at_once
        self.plain_rules = plain_rules
        self.stores_zstd = stores_zstd

    def withdraw(self) -> None:
        self.partition = None


@cython.cclass
class PartitionEnd:
    """A log that this broker leads, and those who wait for its end.

    `is_alone`: no other replica is in sync, so what is in the log is committed.
    `plain_produces`: how many Produce requests the short way has answered."""

    @property
    def high_watermark(self) -> int:
        """The log has the only one."""
        return self.log.high_watermark

    @cython.ccall
    def append(self, batch: CheckedBatch, from_client: cython.bint = True) -> AppendResult:
        """Append a checked batch as the leader, count it, and wake those who wait for it."""
        result: AppendResult = self.append_silently(batch, from_client)
        if not result.duplicate:
            self.wake_after_append()
        return result

    @cython.ccall
    def append_silently(self, batch: CheckedBatch, from_client: cython.bint = True) -> AppendResult:
        """The same, but `wake_after_append` is left to the caller, who has more to append first."""
        result: AppendResult = self.log.append_as_leader(batch, self.leader_epoch, from_client)
        if not result.duplicate:
            self.bytes_in += batch.size
            self.records_in += batch.count
        return result

    @cython.ccall
    def wake_after_append(self) -> object:
        """Wake those who wait for the end of the log, which is committed if there is one replica only."""
        log: LogEnd = self.log
        end: cython.longlong = log.log_end_offset
        if self.appended.waiting:
            self.appended.advance(end)
        if self.is_alone and end > log.high_watermark:
            log.update_high_watermark(end)
            if self.committed.waiting:
                self.committed.advance(end)
