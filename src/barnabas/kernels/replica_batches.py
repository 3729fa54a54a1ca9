# cython: boundscheck=False, wraparound=False
"""The batches of a Fetch answer on a follower: checking them, and finding how many fit into a segment.

Works on bytes and ints only; every length is checked against the end of the data. `crc32c` is the checksum
function."""

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

LONG_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)

# Why a check stopped: at the end of the data or at a batch that is cut off; at bytes that are not a batch; at
# a wrong checksum; at an offset that was there already; at an epoch older than the one before; at an epoch
# that the leader cannot have yet.
GOOD, NOT_A_BATCH, WRONG_CHECKSUM, OFFSET_REPEATED, EPOCH_BACK, EPOCH_AHEAD = range(6)

_NOT_A_BATCH = cython.declare(cython.int, 1)
_WRONG_CHECKSUM = cython.declare(cython.int, 2)
_OFFSET_REPEATED = cython.declare(cython.int, 3)
_EPOCH_BACK = cython.declare(cython.int, 4)
_EPOCH_AHEAD = cython.declare(cython.int, 5)


@cython.cfunc
@cython.exceptval(check=False)
def _fault(
    data: Input,
    position: cython.Py_ssize_t,
    size: cython.longlong,
    next_offset: cython.longlong,
    epoch: cython.longlong,
    epoch_limit: cython.longlong,
) -> cython.int:
    """What is wrong with the header of the batch at `position`; 0 if nothing is."""
    base_offset: cython.longlong = read_number(data, position, 8)
    delta: cython.longlong = read_number(data, position + LAST_OFFSET_DELTA_AT, 4)
    batch_epoch: cython.longlong = read_number(data, position + LEADER_EPOCH_AT, 4)
    if size < HEADER_SIZE or data[position + MAGIC_AT] != MAGIC:
        return _NOT_A_BATCH
    if base_offset < 0 or delta < 0 or delta >= LONG_MAX - base_offset:
        return _NOT_A_BATCH
    if base_offset < next_offset:
        return _OFFSET_REPEATED
    if batch_epoch < epoch:
        return _EPOCH_BACK
    if batch_epoch > epoch_limit:
        return _EPOCH_AHEAD
    return 0


def check_batches(
    data: object,
    next_offset: cython.longlong,
    epoch: cython.longlong,
    epoch_limit: cython.longlong,
    crc32c: object,
) -> tuple:
    """Check that complete batches with rising offsets follow a log that ends at `next_offset` in `epoch`.

    Returns (why the check stopped, bytes that are good, first offset, last offset, epochs, producers). Both
    offsets are -1 if there is no good batch. `epochs` has (epoch, first offset) of each new epoch;
    `producers` the positions of batches with a producer id."""
    if len(data) < HEADER_SIZE:
        return 0, 0, -1, -1, [], []
    memory: cython.const[cython.uchar][::1] = data
    head: Input = cython.address(memory[0]) if cython.compiled else memory
    end: cython.Py_ssize_t = len(data)
    position: cython.Py_ssize_t = 0
    size: cython.longlong
    computed: cython.longlong
    batch_epoch: cython.longlong
    first: cython.longlong = -1
    last: cython.longlong = -1
    fault: cython.int = 0
    epochs: list = []
    producers: list = []
    while end - position >= HEADER_SIZE:
        size = read_number(head, position + BATCH_LENGTH_AT, 4) + LENGTH_OVERHEAD
        fault = _fault(head, position, size, next_offset, epoch, epoch_limit)
        if fault != 0 or size > end - position:
            break
        computed = crc32c(data[position + ATTRIBUTES_AT : position + cython.cast(cython.Py_ssize_t, size)])
        if (read_number(head, position + CRC_AT, 4) - computed) % 4294967296 != 0:
            fault = _WRONG_CHECKSUM
            break
        if first < 0:
            first = read_number(head, position, 8)
        last = read_number(head, position, 8) + read_number(head, position + LAST_OFFSET_DELTA_AT, 4)
        next_offset = last + 1
        batch_epoch = read_number(head, position + LEADER_EPOCH_AT, 4)
        if batch_epoch > epoch:
            epoch = batch_epoch
            epochs.append((epoch, read_number(head, position, 8)))
        if read_number(head, position + PRODUCER_ID_AT, 8) >= 0:
            producers.append(position)
        position += cython.cast(cython.Py_ssize_t, size)
    return fault, position, first, last, epochs, producers


def fitting_run(
    data: object,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    segment_size: cython.longlong,
    size_limit: cython.longlong,
    offset_limit: cython.longlong,
    timestamp_limit: cython.longlong,
    index_interval: cython.longlong,
    since_index: cython.longlong,
    entries_max: cython.longlong,
    max_timestamp: cython.longlong,
    max_timestamp_offset: cython.longlong,
) -> tuple:
    """Which of the checked batches in data[start:end] fit into a segment of `segment_size` bytes.

    The first batch always fits: the caller has made room for it. A later one fits if it stays within the
    limits and fewer than `entries_max` index entries are due before it. An index entry is due after
    `index_interval` bytes, of which there are `since_index` already. `max_timestamp` is the segment's highest
    and has this offset. Returns (end of the run in data, last offset, highest timestamp, its offset, bytes
    since the last index entry, entries); an entry is (last offset, position in the segment, highest timestamp
    up to there, its offset)."""
    memory: cython.const[cython.uchar][::1] = data
    head: Input = cython.address(memory[0]) if cython.compiled else memory
    position: cython.Py_ssize_t = start
    size: cython.Py_ssize_t
    timestamp: cython.longlong
    last: cython.longlong
    last_offset: cython.longlong = -1
    count: cython.longlong = 0
    entries: list = []
    while position < end:
        size = cython.cast(
            cython.Py_ssize_t, read_number(head, position + BATCH_LENGTH_AT, 4) + LENGTH_OVERHEAD
        )
        timestamp = read_number(head, position + MAX_TIMESTAMP_AT, 8)
        last = read_number(head, position, 8) + read_number(head, position + LAST_OFFSET_DELTA_AT, 4)
        if position > start and (
            size > size_limit - segment_size
            or timestamp > timestamp_limit
            or last > offset_limit
            or count >= entries_max
        ):
            break
        if timestamp > max_timestamp:
            max_timestamp = timestamp
            max_timestamp_offset = last
        if since_index > index_interval:
            entries.append((last, segment_size, max_timestamp, max_timestamp_offset))
            count += 1
            since_index = 0
        since_index += size
        segment_size += size
        last_offset = last
        position += size
    return position, last_offset, max_timestamp, max_timestamp_offset, since_index, entries
