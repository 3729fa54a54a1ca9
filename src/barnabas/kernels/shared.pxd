# The C functions of shared.py for other kernels; what they do is described there.

cdef Py_ssize_t BASE_OFFSET_AT
cdef Py_ssize_t BATCH_LENGTH_AT
cdef Py_ssize_t LEADER_EPOCH_AT
cdef Py_ssize_t MAGIC_AT
cdef Py_ssize_t CRC_AT
cdef Py_ssize_t ATTRIBUTES_AT
cdef Py_ssize_t LAST_OFFSET_DELTA_AT
cdef Py_ssize_t BASE_TIMESTAMP_AT
cdef Py_ssize_t MAX_TIMESTAMP_AT
cdef Py_ssize_t PRODUCER_ID_AT
cdef Py_ssize_t PRODUCER_EPOCH_AT
cdef Py_ssize_t BASE_SEQUENCE_AT
cdef Py_ssize_t RECORD_COUNT_AT
cdef Py_ssize_t HEADER_SIZE
cdef Py_ssize_t LENGTH_OVERHEAD
cdef int MAGIC

cdef class OpenBatch:
    cdef readonly object data
    cdef public Py_ssize_t position
    cdef readonly Py_ssize_t end
    cdef public Py_ssize_t left
    cdef readonly long long base_offset
    cdef readonly long long base_timestamp
    cdef readonly object append_time
    cdef readonly int leader_epoch
    cdef readonly long long next_offset

cdef class Record:
    cdef Py_ssize_t end
    cdef long long timestamp_delta
    cdef Py_ssize_t offset_start
    cdef long long offset_delta
    cdef Py_ssize_t key_start
    cdef Py_ssize_t key_length
    cdef Py_ssize_t value_start
    cdef Py_ssize_t value_length
    cdef Py_ssize_t headers_start
    cdef Py_ssize_t header_count
    cdef Py_ssize_t header_bytes

cdef class RecordHeader:
    cdef Py_ssize_t name_start
    cdef Py_ssize_t name_length
    cdef Py_ssize_t value_start
    cdef Py_ssize_t value_length

cdef bytes copy_bytes(const unsigned char* data, Py_ssize_t start, Py_ssize_t end)
cdef long long read_number(const unsigned char* data, Py_ssize_t position, int width) noexcept nogil
cdef Py_ssize_t write_number(
    unsigned char* out, Py_ssize_t position, int width, long long value
) noexcept nogil
cdef (long long, Py_ssize_t) read_varint(
    const unsigned char* data, Py_ssize_t position, Py_ssize_t end, int bits
) noexcept nogil
cdef (Py_ssize_t, Py_ssize_t) read_length(
    const unsigned char* data, Py_ssize_t position, Py_ssize_t end, long long lowest
) noexcept nogil
cdef (long long, Py_ssize_t) read_unsigned_varint(
    const unsigned char* data, Py_ssize_t position, Py_ssize_t end
) noexcept nogil
cdef Py_ssize_t write_varint(unsigned char* out, Py_ssize_t position, long long value) noexcept nogil
cdef Py_ssize_t write_unsigned_varint(
    unsigned char* out, Py_ssize_t position, unsigned long long value
) noexcept nogil
cdef Py_ssize_t varint_size(long long value) noexcept nogil
cdef bint sum_overflows(long long left, long long right) noexcept nogil
cdef int append_number(bytearray out, int width, long long value) except -1
cdef int append_varint(bytearray out, long long value) except -1
cdef int append_unsigned_varint(bytearray out, unsigned long long value) except -1
cdef int read_record(
    const unsigned char* data, Py_ssize_t position, Py_ssize_t end, Record record
) noexcept nogil
cdef Py_ssize_t read_header(
    const unsigned char* data, Py_ssize_t position, Py_ssize_t end, RecordHeader header
) noexcept nogil
cdef int read_headers(const unsigned char* data, Record record) noexcept nogil
cpdef bytearray uncleared(Py_ssize_t size)
