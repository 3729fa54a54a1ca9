"""The end of a log, where batches are appended: the numbers that every append reads and changes, kept as C
keeps them, and what an append does with them.

Four classes are built on these four and see the numbers as attributes: log.index.SparseIndex,
log.segment.Segment, log.state.LogState and replication.partition.Partition. What is rare (opening a file,
rolling, writing index entries, a failure) is theirs, and is called here by name."""

import errno
import os
import struct

import cython

# The start of a batch: base offset, length after these two, leader epoch. None of it is in the CRC.
_START = struct.Struct(">qii")
# So many entries of an index wait to be written together.
WRITE_CHUNK_ENTRIES = 512


@cython.cclass
class IndexEnd:
    """The entries of the active segment's index, which are in memory: two arrays; none of an inactive one."""

    _keys = cython.declare(object, visibility="public")
    _values = cython.declare(object, visibility="public")
    _written = cython.declare(cython.longlong, visibility="public")
    entries_max = cython.declare(cython.longlong, visibility="public")

    @cython.ccall
    def append(self, key: cython.longlong, value: cython.longlong) -> cython.longlong:
        """How many entries there are now."""
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
        """The key of an active index's last entry, -1 where it has none."""
        return self._keys[-1] if self._keys else -1


@cython.cclass
class SegmentEnd:
    """The file of the active segment and how far it is filled."""

    active = cython.declare(cython.bint, visibility="public")
    base_offset = cython.declare(cython.longlong, visibility="public")
    index = cython.declare(IndexEnd, visibility="public")
    time_index = cython.declare(IndexEnd, visibility="public")
    _fd = cython.declare(cython.int, visibility="public")
    _pwrite = cython.declare(object, visibility="public")
    size = cython.declare(cython.longlong, visibility="public")
    next_offset = cython.declare(cython.longlong, visibility="public")
    size_limit = cython.declare(cython.longlong, visibility="public")
    offset_limit = cython.declare(cython.longlong, visibility="public")
    timestamp_limit = cython.declare(cython.longlong, visibility="public")
    max_timestamp = cython.declare(cython.longlong, visibility="public")
    max_timestamp_offset = cython.declare(cython.longlong, visibility="public")
    index_interval = cython.declare(cython.longlong, visibility="public")
    _bytes_since_index = cython.declare(cython.longlong, visibility="public")

    @cython.ccall
    def append(
        self, data: object, last_offset: cython.longlong, max_timestamp: cython.longlong
    ) -> cython.longlong:
        """Write one batch at the end and index it; its position. On failure the segment is as before."""
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
        self.size = position + size
        self.next_offset = last_offset + 1
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self._bytes_since_index > self.index_interval:
            self._add_entry(last_offset, position)
        self._bytes_since_index += size
        if position == 0:
            self._start_roll_timer(max_timestamp)
        return position

    @cython.cfunc
    def _add_entry(self, last_offset: cython.longlong, position: cython.longlong) -> object:
        if self.index.append(last_offset - self.base_offset, position) >= self.index.entries_max:
            self.size_limit = 0
        self.add_time_entry()
        self._bytes_since_index = 0

    @cython.ccall
    def add_time_entry(self) -> object:
        """Write down the highest timestamp so far, if it is news."""
        times: IndexEnd = self.time_index
        if self.active and self.max_timestamp > times.last_key():
            entries = times.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
            if entries >= times.entries_max - 1:
                self.size_limit = 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _has_room(
        self, size: cython.longlong, last_offset: cython.longlong, max_timestamp: cython.longlong
    ) -> cython.bint:
        return (
            size <= self.size_limit - self.size
            and max_timestamp <= self.timestamp_limit
            and last_offset <= self.offset_limit
        )


@cython.cclass
class LogEnd:
    """The offsets of a log and its segments, the last of which is active."""

    log_start_offset = cython.declare(cython.longlong, visibility="public")
    log_end_offset = cython.declare(cython.longlong, visibility="public")
    high_watermark = cython.declare(cython.longlong, visibility="public")
    # The append of this offset has to flush.
    flush_at = cython.declare(cython.longlong, visibility="public")
    offline = cython.declare(cython.bint, visibility="public")
    segments = cython.declare(list, visibility="public")
    leader_epochs = cython.declare(object, visibility="public")
    producers = cython.declare(object, visibility="public")

    @cython.ccall
    def write_next(
        self,
        data: object,
        last_offset: cython.longlong,
        max_timestamp: cython.longlong,
        leader_epoch: cython.longlong,
    ) -> object:
        """Give a batch the log's next offsets and write it; the segment it went to."""
        try:
            if leader_epoch > self.leader_epochs.latest:
                self.leader_epochs.assign(leader_epoch, self.log_end_offset)
            segment: SegmentEnd = self.segments[-1]
            if self.offline or not segment._has_room(len(data), last_offset, max_timestamp):
                segment = self._make_room(len(data), self.log_end_offset, last_offset, max_timestamp)
            _START.pack_into(data, 0, self.log_end_offset, len(data) - 12, leader_epoch)
            segment.append(data, last_offset, max_timestamp)
        except OSError as problem:
            raise self.storage_error(problem) from problem
        self.log_end_offset = last_offset + 1
        return segment

    @cython.ccall
    def update_high_watermark(self, offset: cython.longlong) -> object:
        """The owner says how far the log is replicated."""
        self.high_watermark = offset
        if self.producers.unreplicated:
            self.producers.forget_replicated(offset)


@cython.cclass
class PartitionEnd:
    """A log that this broker leads, and those who wait for its end."""

    log = cython.declare(LogEnd, visibility="public")
    leader_epoch = cython.declare(cython.longlong, visibility="public")
    high_watermark = cython.declare(cython.longlong, visibility="public")
    # Whether there is no other replica in sync, so that what is in the log is committed.
    is_alone = cython.declare(cython.bint, visibility="public")
    committed = cython.declare(object, visibility="public")
    appended = cython.declare(object, visibility="public")
    # What plain_batch has to know of the topic; None where no batch can be appended plainly.
    plain_rules = cython.declare(object, visibility="public")
    bytes_in = cython.declare(cython.longlong, visibility="public")
    records_in = cython.declare(cython.longlong, visibility="public")
    # Produce requests that append_plain has done.
    plain_produces = cython.declare(cython.longlong, visibility="public")

    def append_plain(self, data: object, batch: tuple) -> object:
        """Append a batch outside transactions, of which plain_batch (kernels/batches.py) told all: its first
        offset.

        None where its producer is to be told something, or where it has to be flushed. Then, as after any
        exception, the batch is as it came, and has to go the ordinary way."""
        log: LogEnd = self.log
        first: cython.longlong = log.log_end_offset
        count: cython.longlong = batch[1]
        max_timestamp: cython.longlong = batch[4]
        producer_id: cython.longlong = batch[7]
        if first + count > log.flush_at:
            return None
        if producer_id >= 0 and not log.producers.is_next(producer_id, batch[8], batch[9]):
            return None
        try:
            log.write_next(data, first + count - 1, max_timestamp, self.leader_epoch)
        except Exception:
            _START.pack_into(data, 0, 0, len(data) - 12, -1)
            raise
        if producer_id >= 0:
            log.producers.record_next(producer_id, batch[8], batch[9], (first, count - 1, max_timestamp))
        self.bytes_in += len(data)
        self.records_in += count
        self.plain_produces += 1
        self.grown()
        return first

    @cython.ccall
    def grown(self) -> object:
        """The log has a new end: let those go on who waited for it. With one replica it is committed."""
        end: cython.longlong = self.log.log_end_offset
        if self.appended.waiting:
            self.appended.advance(end)
        if self.is_alone and end > self.high_watermark:
            self.high_watermark = end
            self.log.update_high_watermark(end)
            if self.committed.waiting:
                self.committed.advance(end)
