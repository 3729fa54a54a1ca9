# System calls that Cython does not declare itself.

cdef extern from "poll.h" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    int POLLIN
    int POLLOUT
    int poll(pollfd* entries, unsigned long count, int timeout_ms)
