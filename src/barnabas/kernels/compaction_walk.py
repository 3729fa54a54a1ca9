# cython: boundscheck=False, wraparound=False
"""Compaction's walks over whole batches (magic 2) in a window of a segment.

Plain batches (no compression, transaction or control flag) are dealt with here, a whole window in one call;
the caller looks at the others one by one. `offsets` is an OffsetMap, `crc32c` the checksum function: every
batch is checked, so that damage is found here and not written anew with a checksum that fits."""

import cython

# Why a walk stopped: no whole batch is left, the caller has to look at the next one, the map is full, or the
# next batch is not what was written.
END, LOOK, FULL, BROKEN = range(4)


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
def _put_number(
    out: cython.uchar[::1], position: cython.Py_ssize_t, width: cython.int, value: cython.longlong
) -> cython.void:
    index: cython.int
    for index in range(width):
        out[position + index] = cython.cast(cython.uchar, (value >> (8 * (width - 1 - index))) & 0xFF)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _batch_size(data: cython.const[cython.uchar][::1], position: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Size of the whole batch at `position`; 0 where it is not all there, -1 where no batch can start so."""
    size: cython.longlong
    if position < 0 or data.shape[0] - position < 61:
        return 0
    size = _number(data, position + 8, 4) + 12
    if size < 61 or data[position + 16] != 2 or _number(data, position, 8) < 0:
        return -1
    if _number(data, position + 23, 4) < 0 or _number(data, position + 57, 4) < 0:
        return -1
    return cython.cast(cython.Py_ssize_t, size) if size <= data.shape[0] - position else 0


@cython.cfunc
@cython.inline
@cython.exceptval(-1)
def _next(
    data: cython.const[cython.uchar][::1],
    window: object,
    position: cython.Py_ssize_t,
    room: cython.Py_ssize_t,
    crc32c: object,
) -> cython.int:
    """Why to stop at `position`, or FULL, which here stands for none: a plain batch in order begins there."""
    stored: cython.longlong
    computed: cython.longlong
    size: cython.Py_ssize_t = _batch_size(data, position)
    if size <= 0:
        return 0 if size == 0 else 3
    if _number(data, position + 21, 2) & 0x37 or size > room:
        return 1
    stored = _number(data, position + 17, 4)
    computed = crc32c(window[position + 21 : position + size])
    return 2 if (stored - computed) % (1 << 32) == 0 else 3


def index_batches(
    offsets: object,
    window: object,
    position: cython.Py_ssize_t,
    start_offset: cython.longlong,
    crc32c: object,
) -> tuple:
    """Enter the keys of plain batches from `position` on: (why it stopped, where, for FULL the offset)."""
    data: cython.const[cython.uchar][::1] = window
    reason: cython.int
    size: cython.Py_ssize_t
    base_offset: cython.longlong
    while True:
        reason = _next(data, window, position, data.shape[0], crc32c)
        if reason != FULL:
            return reason, position, 0
        size = _batch_size(data, position)
        base_offset = _number(data, position, 8)
        if base_offset + _number(data, position + 23, 4) >= start_offset:
            records = window[position + 61 : position + size]
            result = offsets.learn(records, _number(data, position + 57, 4), base_offset, start_offset)
            if result != -1:
                return FULL if result >= 0 else BROKEN, position, result
        position += size


@cython.cfunc
def _shrink(
    target: object,
    bounds: tuple[cython.Py_ssize_t, cython.Py_ssize_t],
    kept: cython.longlong,
    highest: cython.longlong,
    crc32c: object,
) -> cython.void:
    """Make the header of the batch between the bounds fit the records that are left."""
    out: cython.uchar[::1] = target
    start: cython.Py_ssize_t = bounds[0]
    _put_number(out, start + 8, 4, bounds[1] - start - 12)
    if not out[start + 22] & 0x08:
        _put_number(out, start + 35, 8, _number(out, start + 27, 8) + highest)
    _put_number(out, start + 57, 4, kept)
    _put_number(out, start + 17, 4, crc32c(target[start + 21 : bounds[1]]))


def skim_batches(
    offsets: object, window: object, target: object, places: tuple, rules: tuple, crc32c: object
) -> tuple:
    """Copy what stays of the plain batches to `target`, which is as large as the window.

    `places`: where to begin in the window and in the target. `rules`: the newest offset that the map knows,
    the time, and the last offsets of batches that stay even without records. Stops for a batch to LOOK at:
    one that is not plain, that stays empty, or that has to be given a delete horizon. Gives (why it stopped,
    where in the window, where in the target, where the last batch it dealt with is)."""
    data: cython.const[cython.uchar][::1] = window
    position: cython.Py_ssize_t = places[0]
    written: cython.Py_ssize_t = places[1]
    end: cython.Py_ssize_t
    last: cython.Py_ssize_t = -1
    reason: cython.int
    size: cython.Py_ssize_t
    count: cython.Py_ssize_t
    kept: cython.Py_ssize_t
    base_offset: cython.longlong
    has_horizon: cython.bint
    while True:
        reason = _next(data, window, position, len(target) - written, crc32c)
        if reason != FULL:
            return reason, position, written, last
        size = _batch_size(data, position)
        base_offset = _number(data, position, 8)
        count = cython.cast(cython.Py_ssize_t, _number(data, position + 57, 4))
        has_horizon = _number(data, position + 21, 2) & 0x40 != 0
        keep_tombstones = not has_horizon or rules[1] < _number(data, position + 27, 8)
        filter_rules = (rules[0], keep_tombstones, 0)
        records = window[position + 61 : position + size]
        kept, end, tombstones, highest = offsets.filter(
            records, count, base_offset, filter_rules, target[written + 61 : written + size]
        )
        if kept < 0:
            return BROKEN, position, written, last
        if kept == 0:
            if base_offset + _number(data, position + 23, 4) in rules[2]:
                return LOOK, position, written, last
        elif tombstones and not has_horizon:
            return LOOK, position, written, last
        else:
            target[written : written + 61] = window[position : position + 61]
            end += written + 61
            if kept < count:
                _shrink(target, (written, end), kept, highest, crc32c)
            written = end
        last = position
        position += size
