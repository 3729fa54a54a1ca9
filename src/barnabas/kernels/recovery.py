# cython: boundscheck=False, wraparound=False
"""The part of a recovery that is the same for batch after batch: whole, unchanged, each next to the last one.

Bytes and ints only. Whatever is not so stops the run and is for the caller to judge; nothing is read beyond
the window. `crc32c` is the checksum function."""

import cython


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _number(
    data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, width: cython.int
) -> cython.longlong:
    """The signed big-endian integer of `width` bytes; the caller has checked that they are there."""
    index: cython.Py_ssize_t
    value: cython.longlong = data[position]
    if value >= 0x80:
        value -= 0x100
    for index in range(position + 1, position + width):
        value = value * 256 + data[index]
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _follows(
    data: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    base_offset: cython.longlong,
    epoch: cython.longlong,
    limit: cython.longlong,
) -> cython.Py_ssize_t:
    """The size of the whole batch at `position` if it begins at this offset, in this epoch; 0 otherwise."""
    size: cython.longlong
    delta: cython.longlong
    if data.shape[0] - position < 61 or data[position + 16] != 2:
        return 0
    size = _number(data, position + 8, 4) + 12
    delta = _number(data, position + 23, 4)
    if size < 61 or size > data.shape[0] - position or delta < 0 or delta >= limit - base_offset:
        return 0
    if _number(data, position, 8) != base_offset or _number(data, position + 12, 4) != epoch:
        return 0
    return cython.cast(cython.Py_ssize_t, size)


def sound_run(window: object, start: cython.longlong, known: tuple, marks: tuple, crc32c: object) -> tuple:
    """Follow sound batches from the beginning of the window, which lies at byte `start` of the segment.

    `known`: the last offset before, the leader epoch, the offset below which all must stay. `marks`: bytes
    between index entries, where the last one points, the highest timestamp so far and its offset. Gives
    (bytes dealt with, last offset, highest timestamp, its offset, whether a producer has an id, entries); an
    entry is (last offset, position, highest timestamp up to there, its offset)."""
    data: cython.const[cython.uchar][::1] = window
    position: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    floor: cython.longlong = known[0]
    epoch: cython.longlong = known[1]
    limit: cython.longlong = known[2]
    interval: cython.longlong = marks[0]
    indexed_at: cython.longlong = marks[1]
    highest: cython.longlong = marks[2]
    highest_offset: cython.longlong = marks[3]
    timestamp: cython.longlong
    computed: cython.longlong
    has_producers: cython.bint = False
    entries: list = []
    while True:
        size = _follows(data, position, floor + 1, epoch, limit)
        if size == 0:
            break
        computed = crc32c(window[position + 21 : position + size])
        if (_number(data, position + 17, 4) - computed) % 4294967296 != 0:
            break
        floor += 1 + _number(data, position + 23, 4)
        if data[position + 43] < 0x80:
            has_producers = True
        timestamp = _number(data, position + 35, 8)
        if timestamp > highest:
            highest = timestamp
            highest_offset = floor
        if start + position - indexed_at > interval:
            indexed_at = start + position
            entries.append((floor, indexed_at, highest, highest_offset))
        position += size
    return position, floor, highest, highest_offset, bool(has_producers), entries
