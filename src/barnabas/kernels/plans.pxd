# The plans for codec.py and codec_write.py; plans.py describes them.

cdef int INT
cdef int UNSIGNED
cdef int STRING
cdef int STRUCT
cdef int ARRAY
cdef int BOOL
cdef int UUID
cdef int BYTES
cdef int RECORDS
cdef int FLOAT
cdef long long STRING_BYTES_MAX

cdef class StructPlan:
    cdef object message_class
    cdef object new
    cdef tuple fields
    cdef tuple tagged
    cdef dict tags
    cdef tuple absent
    cdef bint flexible
    cdef bint has_long_fields
    cdef Py_ssize_t size_min

cdef class FieldPlan:
    cdef readonly str name
    cdef readonly long long tag
    cdef readonly Py_ssize_t size_min
    cdef int kind
    cdef int width
    cdef bint compact
    cdef bint nullable
    cdef object default
    cdef StructPlan struct
    cdef FieldPlan element
