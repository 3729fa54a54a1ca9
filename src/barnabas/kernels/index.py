# cython: boundscheck=False, wraparound=False
"""Steps over whole record batch headers in a part of a segment, to find an offset or to check their order.
Works on bytes and ints only.

Every read is checked against the end of the buffer and every length against what a batch can have, so damaged
bytes give an answer (CORRUPT), never a read beyond the buffer or an endless loop."""

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.shared import (
        BATCH_LENGTH_AT,
        HEADER_SIZE,
        LAST_OFFSET_DELTA_AT,
        LEADER_EPOCH_AT,
        LENGTH_OVERHEAD,
        MAGIC,
        MAGIC_AT,
        read_number,
    )
else:
    from barnabas.kernels.shared import (
        BATCH_LENGTH_AT,
        HEADER_SIZE,
        LAST_OFFSET_DELTA_AT,
        LEADER_EPOCH_AT,
        LENGTH_OVERHEAD,
        MAGIC,
        MAGIC_AT,
        read_number,
    )

Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])

FOUND = 0
MORE = 1
CORRUPT = 2
# A base offset from here on could pass 64 bits when a delta of 32 bits is added.
BASE_OFFSET_LIMIT = cython.declare(cython.longlong, 0x7FFFFFFF00000000)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _size_after(data: Input, position: cython.Py_ssize_t, last_offset: cython.longlong) -> cython.longlong:
    """The size of the batch whose header is at `position`; 0 if this cannot be a batch that begins above
    `last_offset`."""
    base: cython.longlong = read_number(data, position, 8)
    size: cython.longlong = read_number(data, position + BATCH_LENGTH_AT, 4) + LENGTH_OVERHEAD
    if size < HEADER_SIZE or data[position + MAGIC_AT] != MAGIC:
        return 0
    if read_number(data, position + LAST_OFFSET_DELTA_AT, 4) < 0:
        return 0
    if base <= last_offset or base >= BASE_OFFSET_LIMIT:
        return 0
    return size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _last_offset(data: Input, position: cython.Py_ssize_t) -> cython.longlong:
    return read_number(data, position, 8) + read_number(data, position + LAST_OFFSET_DELTA_AT, 4)


def find_batch(
    buffer: cython.const[cython.uchar][::1], offset: cython.longlong, last_offset: cython.longlong
) -> tuple[cython.int, cython.Py_ssize_t, cython.longlong, cython.longlong]:
    """The first batch that ends at or after `offset`, in a buffer that begins with a batch.

    Returns (FOUND, its position, its size, its last offset); (MORE, position of the first batch whose header
    is not completely in the buffer, 0, last offset before it); or (CORRUPT, position of the bad header, 0,
    last offset before it). A batch must begin above `last_offset`, which is the last offset before the
    buffer."""
    data: Input = cython.address(buffer[0]) if cython.compiled else buffer
    end: cython.Py_ssize_t = len(buffer)
    position: cython.Py_ssize_t = 0
    size: cython.longlong
    while end - position >= HEADER_SIZE:
        size = _size_after(data, position, last_offset)
        if size == 0:
            return CORRUPT, position, 0, last_offset
        last_offset = _last_offset(data, position)
        if last_offset >= offset:
            return FOUND, position, size, last_offset
        if size >= end - position:
            return MORE, position + cython.cast(cython.Py_ssize_t, size), 0, last_offset
        position += cython.cast(cython.Py_ssize_t, size)
    return MORE, position, 0, last_offset


def follow_batches(
    buffer: cython.const[cython.uchar][::1], last_offset: cython.longlong, last_epoch: cython.longlong
) -> tuple[cython.int, cython.Py_ssize_t, cython.longlong, cython.longlong]:
    """Follow the batches of a buffer that begins with one. Each must begin above the offsets before it, and
    its leader epoch must not be lower than the one before it.

    Returns (MORE, position of the first batch whose header is not completely in the buffer, last offset and
    epoch before it), or CORRUPT and the same for the first batch that is not in order. `last_offset` and
    `last_epoch` are those before the buffer."""
    data: Input = cython.address(buffer[0]) if cython.compiled else buffer
    end: cython.Py_ssize_t = len(buffer)
    position: cython.Py_ssize_t = 0
    size: cython.longlong
    epoch: cython.longlong
    while end - position >= HEADER_SIZE:
        size = _size_after(data, position, last_offset)
        epoch = read_number(data, position + LEADER_EPOCH_AT, 4)
        if size == 0 or epoch < last_epoch:
            return CORRUPT, position, last_offset, last_epoch
        last_offset = _last_offset(data, position)
        last_epoch = epoch
        if size >= end - position:
            return MORE, position + cython.cast(cython.Py_ssize_t, size), last_offset, last_epoch
        position += cython.cast(cython.Py_ssize_t, size)
    return MORE, position, last_offset, last_epoch
