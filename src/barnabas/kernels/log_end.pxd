# The C classes of log_end.py for other kernels; what they are is described there.

from barnabas.kernels.batches cimport CheckedBatch, PlainRules

cdef class IndexEnd:
    cdef public object _keys
    cdef public object _values
    cdef public long long _written
    cdef public long long entries_max
    cpdef long long append(self, long long key, long long value)
    cpdef long long last_key(self)

cdef class SegmentEnd:
    cdef public bint active
    cdef public long long base_offset
    cdef public IndexEnd index
    cdef public IndexEnd time_index
    cdef public int _fd
    cdef public object _pwrite
    cdef public long long size
    cdef public long long next_offset
    cdef public long long size_limit
    cdef public long long offset_limit
    cdef public long long timestamp_limit
    cdef public long long max_timestamp
    cdef public long long max_timestamp_offset
    cdef public long long index_interval
    cdef public long long _bytes_since_index
    cpdef long long append(self, object data, long long last_offset, long long max_timestamp)
    cpdef object write_at_end(self, object data)
    cpdef object add_entry(self, long long last_offset, long long position)
    cpdef object add_time_entry(self)
    cdef bint _has_room(self, long long size, long long last_offset, long long max_timestamp) noexcept

cdef class AppendResult:
    cdef readonly long long first_offset
    cdef readonly long long last_offset
    cdef readonly long long log_append_time
    cdef readonly long long log_start_offset
    cdef readonly bint duplicate

cdef class LogEnd:
    cdef public long long log_start_offset
    cdef public long long log_end_offset
    cdef public long long high_watermark
    cdef public long long flush_at
    cdef public bint offline
    cdef public list segments
    cdef public object leader_epochs
    cdef public object producers
    cpdef AppendResult append_as_leader(
        self, CheckedBatch batch, long long leader_epoch, bint from_client=*
    )
    cpdef object write_next(
        self, object data, long long last_offset, long long max_timestamp, long long leader_epoch
    )
    cpdef object update_high_watermark(self, long long offset)

cdef class Permit:
    cdef readonly PartitionEnd partition
    cdef readonly long long leader_epoch
    cdef readonly bint commits_at_once
    cdef readonly PlainRules plain_rules
    cdef readonly bint stores_zstd

cdef class PartitionEnd:
    cdef public LogEnd log
    cdef public long long leader_epoch
    cdef public bint is_alone
    cdef public object committed
    cdef public object appended
    cdef public long long bytes_in
    cdef public long long records_in
    cdef public long long plain_produces
    cpdef AppendResult append(self, CheckedBatch batch, bint from_client=*)
    cpdef AppendResult append_silently(self, CheckedBatch batch, bint from_client=*)
    cpdef object wake_after_append(self)
