# cython: boundscheck=False, wraparound=False
"""Compaction's walks over whole batches (magic 2) in a window of a segment.

Plain batches (no compression, transaction or control flag) are processed here, a whole window in one call;
the caller processes the others one by one. `offsets` is an OffsetMap and `crc32c` the checksum function.
Every batch is checked, so that damage is found here and not written again with a checksum that fits."""

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.shared import (
        ATTRIBUTES_AT,
        BASE_TIMESTAMP_AT,
        BATCH_LENGTH_AT,
        CRC_AT,
        HEADER_SIZE,
        LAST_OFFSET_DELTA_AT,
        LENGTH_OVERHEAD,
        MAGIC,
        MAGIC_AT,
        MAX_TIMESTAMP_AT,
        RECORD_COUNT_AT,
        read_number,
        write_number,
    )
else:
    from barnabas.kernels.shared import (
        ATTRIBUTES_AT,
        BASE_TIMESTAMP_AT,
        BATCH_LENGTH_AT,
        CRC_AT,
        HEADER_SIZE,
        LAST_OFFSET_DELTA_AT,
        LENGTH_OVERHEAD,
        MAGIC,
        MAGIC_AT,
        MAX_TIMESTAMP_AT,
        RECORD_COUNT_AT,
        read_number,
        write_number,
    )

Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])
Output = cython.typedef(cython.pointer[cython.uchar])

# Why a walk stopped: no complete batch is left, the caller has to look at the next one, the map is full, or
# the next batch is not what was written.
END = 0
LOOK = 1
FULL = 2
BROKEN = 3
# Nothing stops the walk here.
PLAIN = cython.declare(cython.int, 4)

LOG_APPEND_TIME_FLAG = cython.declare(cython.int, 0x08)
DELETE_HORIZON_FLAG = cython.declare(cython.int, 0x40)
# The codec, the transactional flag and the control flag.
NOT_PLAIN_FLAGS = cython.declare(cython.int, 0x37)


@cython.cfunc
@cython.exceptval(check=False)
def _batch_size(data: Input, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Size of the complete batch at `position`; 0 if it is cut off, -1 if no batch can start like this."""
    size: cython.longlong
    if position < 0 or end - position < HEADER_SIZE:
        return 0
    size = read_number(data, position + BATCH_LENGTH_AT, 4) + LENGTH_OVERHEAD
    if size < HEADER_SIZE or data[position + MAGIC_AT] != MAGIC or read_number(data, position, 8) < 0:
        return -1
    if read_number(data, position + LAST_OFFSET_DELTA_AT, 4) < 0:
        return -1
    if read_number(data, position + RECORD_COUNT_AT, 4) < 0:
        return -1
    return cython.cast(cython.Py_ssize_t, size) if size <= end - position else 0


@cython.cfunc
@cython.exceptval(-1)
def _state_at(
    data: Input, window: object, position: cython.Py_ssize_t, room: cython.Py_ssize_t, crc32c: object
) -> cython.int:
    """PLAIN if a valid plain batch of at most `room` bytes begins at `position`, otherwise why to stop."""
    stored: cython.longlong
    computed: cython.longlong
    size: cython.Py_ssize_t = _batch_size(data, position, len(window))
    if size <= 0:
        return END if size == 0 else BROKEN
    if read_number(data, position + ATTRIBUTES_AT, 2) & NOT_PLAIN_FLAGS or size > room:
        return LOOK
    stored = read_number(data, position + CRC_AT, 4)
    computed = crc32c(window[position + ATTRIBUTES_AT : position + size])
    return PLAIN if (stored - computed) % (1 << 32) == 0 else BROKEN


def index_batches(
    offsets: object,
    window: object,
    position: cython.Py_ssize_t,
    start_offset: cython.longlong,
    crc32c: object,
) -> tuple:
    """Enter the keys of plain batches from `position` on: (why it stopped, where, for FULL the offset)."""
    memory: cython.const[cython.uchar][::1] = window
    data: Input = cython.address(memory[0]) if cython.compiled else memory
    state: cython.int
    size: cython.Py_ssize_t
    base_offset: cython.longlong
    while True:
        state = _state_at(data, window, position, len(window), crc32c)
        if state != PLAIN:
            return state, position, 0
        size = _batch_size(data, position, len(window))
        base_offset = read_number(data, position, 8)
        if base_offset + read_number(data, position + LAST_OFFSET_DELTA_AT, 4) >= start_offset:
            records = window[position + HEADER_SIZE : position + size]
            count = read_number(data, position + RECORD_COUNT_AT, 4)
            result = offsets.learn(records, count, base_offset, start_offset)
            if result != -1:
                return FULL if result >= 0 else BROKEN, position, result
        position += size


@cython.cfunc
@cython.exceptval(-1)
def _update_header(
    target: object,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    kept: cython.longlong,
    highest: cython.longlong,
    crc32c: object,
) -> cython.int:
    """Make the header of the batch from `start` to `end` fit the `kept` records that are left in it."""
    memory: cython.uchar[::1] = target
    out: Output = cython.address(memory[0]) if cython.compiled else memory
    write_number(out, start + BATCH_LENGTH_AT, 4, end - start - LENGTH_OVERHEAD)
    if not read_number(out, start + ATTRIBUTES_AT, 2) & LOG_APPEND_TIME_FLAG:
        base_timestamp: cython.longlong = read_number(out, start + BASE_TIMESTAMP_AT, 8)
        write_number(out, start + MAX_TIMESTAMP_AT, 8, base_timestamp + highest)
    write_number(out, start + RECORD_COUNT_AT, 4, kept)
    write_number(out, start + CRC_AT, 4, crc32c(target[start + ATTRIBUTES_AT : end]))
    return 0


def skim_batches(
    offsets: object,
    window: object,
    target: object,
    position: cython.Py_ssize_t,
    written: cython.Py_ssize_t,
    latest_offset: cython.longlong,
    expiry_ms: cython.longlong,
    retained: object,
    crc32c: object,
) -> tuple:
    """Copy what stays of the plain batches to `target`, which is as large as the window.

    It begins at `position` of the window and at `written` of the target. `latest_offset` is the newest offset
    that the map knows. Records without a value are removed if the delete horizon of their batch is not after
    `expiry_ms`. `retained` has the last offsets of batches that stay even without records. Stops for a batch
    to LOOK at: one that is not plain, that stays empty, or that needs a delete horizon. Returns (why it
    stopped, where in the window, where in the target, position of the last batch it processed or -1)."""
    memory: cython.const[cython.uchar][::1] = window
    data: Input = cython.address(memory[0]) if cython.compiled else memory
    end: cython.Py_ssize_t
    last: cython.Py_ssize_t = -1
    state: cython.int
    size: cython.Py_ssize_t
    count: cython.Py_ssize_t
    kept: cython.Py_ssize_t
    base_offset: cython.longlong
    has_horizon: cython.bint
    while True:
        state = _state_at(data, window, position, len(target) - written, crc32c)
        if state != PLAIN:
            return state, position, written, last
        size = _batch_size(data, position, len(window))
        base_offset = read_number(data, position, 8)
        count = cython.cast(cython.Py_ssize_t, read_number(data, position + RECORD_COUNT_AT, 4))
        has_horizon = read_number(data, position + ATTRIBUTES_AT, 2) & DELETE_HORIZON_FLAG != 0
        keep_tombstones = not has_horizon or expiry_ms < read_number(data, position + BASE_TIMESTAMP_AT, 8)
        kept, end, tombstones, highest = offsets.filter(
            window[position + HEADER_SIZE : position + size],
            count,
            base_offset,
            latest_offset,
            keep_tombstones,
            0,
            target[written + HEADER_SIZE : written + size],
        )
        if kept < 0:
            return BROKEN, position, written, last
        if kept == 0:
            if base_offset + read_number(data, position + LAST_OFFSET_DELTA_AT, 4) in retained:
                return LOOK, position, written, last
        elif tombstones and not has_horizon:
            return LOOK, position, written, last
        else:
            target[written : written + HEADER_SIZE] = window[position : position + HEADER_SIZE]
            end += written + HEADER_SIZE
            if kept < count:
                _update_header(target, written, end, kept, highest, crc32c)
            written = end
        last = position
        position += size
