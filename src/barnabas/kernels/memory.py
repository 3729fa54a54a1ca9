"""Memory that is not cleared before it is filled: clearing a buffer costs as much as receiving into it."""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_FromStringAndSize


def uncleared(size: cython.Py_ssize_t) -> bytearray:
    """A bytearray of that size with anything in it: for those who fill all of it before they read it."""
    if size < 0:
        raise ValueError("a size is not negative")
    if cython.compiled:
        return PyByteArray_FromStringAndSize(cython.NULL, size)
    return bytearray(size)
