# The C function of hashing.py for other kernels.

cdef unsigned long long hash_of_key(
    const unsigned char* data, Py_ssize_t position, Py_ssize_t length
) noexcept nogil
