# The C classes of batches.py for other kernels; what they are is described there.

from barnabas.kernels.shared cimport Record

cdef class RecordWalk:
    cdef readonly Py_ssize_t count
    cdef readonly long long base_timestamp
    cdef readonly long long timestamp_min
    cdef readonly long long timestamp_max
    cdef readonly bint needs_key
    cdef readonly Py_ssize_t index
    cdef readonly Py_ssize_t position
    cdef readonly long long timestamp
    cdef readonly Py_ssize_t timestamp_index
    cdef Record record

cdef class PlainRules:
    cdef readonly long long timestamp_before_max_ms
    cdef readonly long long timestamp_after_max_ms
    cdef readonly bint needs_key
    cdef readonly long long batch_bytes_max

cdef class CheckedBatch:
    cdef readonly object data
    cdef readonly long long size
    cdef readonly long long count
    cdef readonly long long last_offset_delta
    cdef readonly long long max_timestamp
    cdef readonly long long max_timestamp_delta
    cdef readonly long long attributes
    cdef readonly long long producer_id
    cdef readonly long long producer_epoch
    cdef readonly long long base_sequence

cpdef CheckedBatch check_plain(object batch_bytes, PlainRules rules, long long now_ms)
