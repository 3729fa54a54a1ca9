# cython: boundscheck=False, wraparound=False
"""The part of a recovery that is the same for batch after batch: each is complete, unchanged, and follows the
one before it.

Works on bytes and ints only. The run ends at a batch that is different, and the caller examines that one;
nothing is read beyond the window. `crc32c` is the checksum function."""

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.shared import (
        ATTRIBUTES_AT,
        BATCH_LENGTH_AT,
        CRC_AT,
        HEADER_SIZE,
        LAST_OFFSET_DELTA_AT,
        LEADER_EPOCH_AT,
        LENGTH_OVERHEAD,
        MAGIC,
        MAGIC_AT,
        MAX_TIMESTAMP_AT,
        PRODUCER_ID_AT,
        read_number,
    )
else:
    from barnabas.kernels.shared import (
        ATTRIBUTES_AT,
        BATCH_LENGTH_AT,
        CRC_AT,
        HEADER_SIZE,
        LAST_OFFSET_DELTA_AT,
        LEADER_EPOCH_AT,
        LENGTH_OVERHEAD,
        MAGIC,
        MAGIC_AT,
        MAX_TIMESTAMP_AT,
        PRODUCER_ID_AT,
        read_number,
    )

Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])


@cython.cfunc
@cython.exceptval(check=False)
def _size_if_next(
    data: Input,
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    base_offset: cython.longlong,
    epoch: cython.longlong,
    offset_limit: cython.longlong,
) -> cython.Py_ssize_t:
    """The size of the complete batch at `position` if it has this offset and epoch; 0 otherwise."""
    size: cython.longlong
    delta: cython.longlong
    if end - position < HEADER_SIZE or data[position + MAGIC_AT] != MAGIC:
        return 0
    size = read_number(data, position + BATCH_LENGTH_AT, 4) + LENGTH_OVERHEAD
    delta = read_number(data, position + LAST_OFFSET_DELTA_AT, 4)
    if size < HEADER_SIZE or size > end - position or delta < 0 or delta >= offset_limit - base_offset:
        return 0
    if read_number(data, position, 8) != base_offset:
        return 0
    if read_number(data, position + LEADER_EPOCH_AT, 4) != epoch:
        return 0
    return cython.cast(cython.Py_ssize_t, size)


def sound_run(
    window: object,
    start: cython.longlong,
    last_offset: cython.longlong,
    epoch: cython.longlong,
    offset_limit: cython.longlong,
    index_interval: cython.longlong,
    indexed_position: cython.longlong,
    max_timestamp: cython.longlong,
    max_timestamp_offset: cython.longlong,
    crc32c: object,
) -> tuple:
    """Follow valid batches from the beginning of the window, which is at byte `start` of the segment.

    They continue after `last_offset`, in this leader epoch, and stay below `offset_limit`. An index entry is
    due after `index_interval` bytes; the last one points to `indexed_position`. `max_timestamp` is the
    highest so far and has this offset. Returns (bytes of the run, its last offset, highest timestamp, its
    offset, whether a batch has a producer id, entries); an entry is (last offset, position, highest timestamp
    up to there, its offset)."""
    memory: cython.const[cython.uchar][::1] = window
    data: Input = cython.address(memory[0]) if cython.compiled else memory
    end: cython.Py_ssize_t = len(window)
    position: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    timestamp: cython.longlong
    computed: cython.longlong
    has_producers: cython.bint = False
    entries: list = []
    while True:
        size = _size_if_next(data, position, end, last_offset + 1, epoch, offset_limit)
        if size == 0:
            break
        computed = crc32c(window[position + ATTRIBUTES_AT : position + size])
        if (read_number(data, position + CRC_AT, 4) - computed) % 4294967296 != 0:
            break
        last_offset += 1 + read_number(data, position + LAST_OFFSET_DELTA_AT, 4)
        if read_number(data, position + PRODUCER_ID_AT, 8) >= 0:
            has_producers = True
        timestamp = read_number(data, position + MAX_TIMESTAMP_AT, 8)
        if timestamp > max_timestamp:
            max_timestamp = timestamp
            max_timestamp_offset = last_offset
        if start + position - indexed_position > index_interval:
            indexed_position = start + position
            entries.append((last_offset, indexed_position, max_timestamp, max_timestamp_offset))
        position += size
    return position, last_offset, max_timestamp, max_timestamp_offset, bool(has_producers), entries
