"""Steps over whole record batch headers in a piece of a segment, to find an offset. Bytes and ints only.

Every read is checked against the buffer's end and every length against what a batch can be, so damaged bytes
give an answer (CORRUPT), never a wild read or an endless loop."""

import cython

FOUND = 0
MORE = 1
CORRUPT = 2


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _int64(buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t) -> cython.longlong:
    index: cython.int
    value: cython.longlong = buffer[position]
    if value >= 128:
        value -= 256
    for index in range(1, 8):
        value = value * 256 + buffer[position + index]
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _int32(buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t) -> cython.longlong:
    value: cython.longlong = buffer[position]
    if value >= 128:
        value -= 256
    return ((value * 256 + buffer[position + 1]) * 256 + buffer[position + 2]) * 256 + buffer[position + 3]


@cython.boundscheck(False)
@cython.wraparound(False)
def find_batch(
    buffer: cython.const[cython.uchar][::1], offset: cython.longlong, floor: cython.longlong
) -> tuple[cython.int, cython.Py_ssize_t, cython.longlong, cython.longlong]:
    """The first batch that ends at or after `offset`, in a buffer that begins with a batch.

    Gives (FOUND, its position, its size, its last offset); (MORE, position of the first batch whose header
    is not wholly in the buffer, 0, last offset before it); or (CORRUPT, position of the bad header, 0,
    likewise). A batch that does not begin above `floor`, the last offset before the buffer, is corrupt."""
    end: cython.Py_ssize_t = len(buffer)
    position: cython.Py_ssize_t = 0
    size: cython.longlong
    base: cython.longlong
    delta: cython.longlong
    while end - position >= 61:
        base = _int64(buffer, position)
        size = _int32(buffer, position + 8) + 12
        delta = _int32(buffer, position + 23)
        if (
            size < 61
            or buffer[position + 16] != 2
            or delta < 0
            or base <= floor
            or base >= 0x7FFFFFFF00000000
        ):
            return CORRUPT, position, 0, floor
        floor = base + delta
        if floor >= offset:
            return FOUND, position, size, floor
        if size >= end - position:
            return MORE, position + cython.cast(cython.Py_ssize_t, size), 0, floor
        position += cython.cast(cython.Py_ssize_t, size)
    return MORE, position, 0, floor
