# cython: boundscheck=False, wraparound=False
"""Walks over record batches (magic 2) and the records in them: bytes and ints, no object made per record.

Every read is checked against the buffer's end, so hostile bytes give an error number, never a wild read.
Errors of RecordWalk: 1 record length, 2 timestamp varint, 3 offset delta, 4 key length, 5 value length,
6 header count, 7 header, 8 bytes left in a record, 9 bytes left after the last record, 10 timestamp beyond
64 bits, 11 no key though one is required, 12 timestamp out of range. 11 and 12 are a record's own fault: the
walk can go on after it.

The fields of the C classes are declared in batches.pxd, so that other kernels reach them with C's speed."""

import cython
from crc32c import crc32c

if cython.compiled:
    from cython.cimports.barnabas.kernels.shared import (
        ATTRIBUTES_AT,
        BASE_OFFSET_AT,
        BASE_SEQUENCE_AT,
        BASE_TIMESTAMP_AT,
        BATCH_LENGTH_AT,
        CRC_AT,
        HEADER_SIZE,
        LAST_OFFSET_DELTA_AT,
        LENGTH_OVERHEAD,
        MAGIC,
        MAGIC_AT,
        MAX_TIMESTAMP_AT,
        PRODUCER_EPOCH_AT,
        PRODUCER_ID_AT,
        RECORD_COUNT_AT,
        Record,
        read_headers,
        read_number,
        read_record,
        sum_overflows,
    )
else:
    from barnabas.kernels.shared import (
        ATTRIBUTES_AT,
        BASE_OFFSET_AT,
        BASE_SEQUENCE_AT,
        BASE_TIMESTAMP_AT,
        BATCH_LENGTH_AT,
        CRC_AT,
        HEADER_SIZE,
        LAST_OFFSET_DELTA_AT,
        LENGTH_OVERHEAD,
        MAGIC,
        MAGIC_AT,
        MAX_TIMESTAMP_AT,
        PRODUCER_EPOCH_AT,
        PRODUCER_ID_AT,
        RECORD_COUNT_AT,
        Record,
        read_headers,
        read_number,
        read_record,
        sum_overflows,
    )

Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])

LONG_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
TRANSACTIONAL_FLAG = cython.declare(cython.int, 0x10)
# The length of a record and the six bytes that it has at least.
RECORD_SIZE_MIN = cython.declare(cython.int, 7)

OFFSET_DELTA = cython.declare(cython.int, 3)
BYTES_LEFT = cython.declare(cython.int, 9)
TIMESTAMP_OVERFLOW = cython.declare(cython.int, 10)
NO_KEY = cython.declare(cython.int, 11)
TIMESTAMP_OUT_OF_RANGE = cython.declare(cython.int, 12)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _short(data: Input, position: cython.Py_ssize_t) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """A varint of one or two bytes, its zigzag still in it: (raw value, position after it), -1 for a longer
    one. The caller has checked that two bytes are there."""
    raw: cython.longlong = data[position]
    if raw < 0x80:
        return raw, position + 1
    if data[position + 1] < 0x80:
        return (raw & 0x7F) | (cython.cast(cython.longlong, data[position + 1]) << 7), position + 2
    return -1, position


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _short_record(
    data: Input, position: cython.Py_ssize_t, end: cython.Py_ssize_t, index: cython.Py_ssize_t
) -> tuple[cython.Py_ssize_t, cython.longlong, cython.longlong]:
    """Check a record without headers whose numbers have one or two bytes each, as nearly all have: (position
    after it, timestamp delta, key length). The position is 0 for any other, which needs a closer look."""
    raw: cython.longlong
    timestamp: cython.longlong
    key_length: cython.longlong
    # Four numbers and the attributes are read before it is known what is in the record.
    if end - position < 16:
        return 0, 0, 0
    raw, position = _short(data, position)
    if raw < 14 or raw & 1 or (raw >> 1) > end - position:
        return 0, 0, 0
    end = position + cython.cast(cython.Py_ssize_t, raw >> 1)
    timestamp, position = _short(data, position + 1)
    raw, position = _short(data, position)
    if timestamp < 0 or raw != index << 1:
        return 0, 0, 0
    raw, position = _short(data, position)
    key_length = (raw >> 1) ^ -(raw & 1)
    if raw < 0 or key_length < -1 or key_length > end - position:
        return 0, 0, 0
    if key_length > 0:
        position += cython.cast(cython.Py_ssize_t, key_length)
    if end - position < 2:
        return 0, 0, 0
    raw, position = _short(data, position)
    # After the value comes the number of headers, which is 0, and nothing else.
    if raw < 0 or raw & 1 or (raw >> 1) != end - position - 1 or data[end - 1] != 0:
        return 0, 0, 0
    return end, (timestamp >> 1) ^ -(timestamp & 1), key_length


@cython.freelist(4)
@cython.cclass
class RecordWalk:
    """A walk over the records of one batch: what they are checked against, and what was found.

    `index` and `position` are those of the next record. After errors 11 and 12 that is the record after the
    refused one; `timestamp` is then the refused record's. Otherwise `timestamp` is the highest one and
    `timestamp_index` the first record that has it, or the last record if none has a timestamp."""

    def __init__(
        self,
        count: cython.Py_ssize_t,
        base_timestamp: cython.longlong,
        timestamp_min: cython.longlong,
        timestamp_max: cython.longlong,
        needs_key: cython.bint,
        position: cython.Py_ssize_t = 0,
    ) -> None:
        if position < 0:
            raise ValueError("a walk cannot start before the buffer")
        self.count = count
        self.base_timestamp = base_timestamp
        self.timestamp_min = timestamp_min
        self.timestamp_max = timestamp_max
        self.needs_key = needs_key
        self.index = 0
        self.position = position
        self.timestamp = -1
        self.timestamp_index = count - 1
        self.record = Record()

    def run(self, buffer: cython.const[cython.uchar][::1]) -> int:
        """Check the records from the next one on, which must fill the buffer; return 0 or the error."""
        return _run(buffer, self)


@cython.cfunc
def _run(buffer: cython.const[cython.uchar][::1], walk: RecordWalk) -> cython.int:
    data: Input = cython.address(buffer[0]) if cython.compiled else buffer
    end: cython.Py_ssize_t = buffer.shape[0]
    error: cython.int
    # Below this size a walk takes microseconds, less than handing the interpreter lock over and back.
    if end - walk.position > 65536:
        with cython.nogil:
            error = _walk(data, end, walk, walk.record)
    else:
        error = _walk(data, end, walk, walk.record)
    return error


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk(data: Input, end: cython.Py_ssize_t, walk: RecordWalk, record: Record) -> cython.int:
    index: cython.Py_ssize_t
    position: cython.Py_ssize_t = walk.position
    after: cython.Py_ssize_t
    error: cython.int
    key_length: cython.longlong
    timestamp: cython.longlong
    max_timestamp: cython.longlong = -1
    for index in range(walk.index, walk.count):
        walk.index = index
        after, timestamp, key_length = _short_record(data, position, end, index)
        if after == 0:
            error = _look_closely(data, position, end, index, record)
            if error != 0:
                return error
            after = record.end
            timestamp = record.timestamp_delta
            key_length = record.key_length
        position = after
        if sum_overflows(walk.base_timestamp, timestamp):
            return TIMESTAMP_OVERFLOW
        timestamp += walk.base_timestamp
        if key_length < 0 and walk.needs_key:
            return _refused(walk, position, timestamp, NO_KEY)
        if (timestamp < walk.timestamp_min or timestamp > walk.timestamp_max) and timestamp != -1:
            return _refused(walk, position, timestamp, TIMESTAMP_OUT_OF_RANGE)
        if timestamp > max_timestamp:
            max_timestamp = timestamp
            walk.timestamp_index = index
    walk.index = walk.count
    walk.position = position
    walk.timestamp = max_timestamp
    return 0 if position == end else BYTES_LEFT


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _look_closely(
    data: Input, position: cython.Py_ssize_t, end: cython.Py_ssize_t, index: cython.Py_ssize_t, record: Record
) -> cython.int:
    """Read any record and check it, its headers too; 0 or the error."""
    error: cython.int = read_record(data, position, end, record)
    if error != 0:
        return error
    if record.offset_delta != index:
        return OFFSET_DELTA
    return read_headers(data, record)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _refused(
    walk: RecordWalk, position: cython.Py_ssize_t, timestamp: cython.longlong, error: cython.int
) -> cython.int:
    """Note the refused record; the walk can go on after it."""
    walk.index += 1
    walk.position = position
    walk.timestamp = timestamp
    return error


def find_timestamp(
    buffer: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    base_timestamp: cython.longlong,
    target: cython.longlong,
) -> tuple:
    """(offset delta, timestamp) of the first of `count` records at `position` that is not before `target`.

    (-1, -1) if there is none, and (-2, -1) if the bytes are malformed."""
    data: Input = cython.address(buffer[0]) if cython.compiled else buffer
    end: cython.Py_ssize_t = buffer.shape[0]
    record: Record = Record()
    _: cython.Py_ssize_t
    if position < 0:
        return -2, -1
    for _ in range(count):
        if read_record(data, position, end, record) != 0:
            return -2, -1
        if sum_overflows(base_timestamp, record.timestamp_delta) or record.offset_delta < 0:
            return -2, -1
        if base_timestamp + record.timestamp_delta >= target:
            return record.offset_delta, base_timestamp + record.timestamp_delta
        position = record.end
    return -1, -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _batch_size(data: Input, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.longlong:
    """Size of the complete batch at `position`; 0 if it is not all there, -1 if no batch can start so."""
    size: cython.longlong
    if position < 0 or end - position <= MAGIC_AT:
        return 0
    size = read_number(data, position + BATCH_LENGTH_AT, 4) + LENGTH_OVERHEAD
    if size < HEADER_SIZE or data[position + MAGIC_AT] != MAGIC or data[position] >= 0x80:
        return -1
    return size if size <= end - position else 0


def find_offset(buffer: cython.const[cython.uchar][::1], target: cython.longlong) -> tuple:
    """(position, size) of the first complete batch whose last offset is not below `target`.

    If there is none: (-1, position where the complete batches end), for the caller to read on from there."""
    data: Input = cython.address(buffer[0]) if cython.compiled else buffer
    end: cython.Py_ssize_t = buffer.shape[0]
    position: cython.Py_ssize_t = 0
    size: cython.longlong
    delta: cython.longlong
    if target < 0:
        target = 0
    while True:
        size = _batch_size(data, position, end)
        if size <= 0:
            return -1, position
        delta = read_number(data, position + LAST_OFFSET_DELTA_AT, 4)
        if read_number(data, position + BASE_OFFSET_AT, 8) - target >= -delta:
            return position, size
        position += cython.cast(cython.Py_ssize_t, size)


def next_batch(buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t) -> tuple:
    """(size, base offset, last offset delta, max timestamp) of the batch at `position`.

    The size is 0 if the batch is not all in the buffer, and -1 if no batch of magic 2 can start so."""
    data: Input = cython.address(buffer[0]) if cython.compiled else buffer
    size: cython.longlong = _batch_size(data, position, buffer.shape[0])
    if size <= 0:
        return size, -1, -1, -1
    return (
        size,
        read_number(data, position + BASE_OFFSET_AT, 8),
        read_number(data, position + LAST_OFFSET_DELTA_AT, 4),
        read_number(data, position + MAX_TIMESTAMP_AT, 8),
    )


def scan_batches(buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t) -> list:
    """(position, size, base offset, last offset delta, max timestamp) of each complete batch from `position`
    on. It stops at the first batch that is cut off or malformed; next_batch says which."""
    batches: list = []
    while True:
        size, base_offset, delta, max_timestamp = next_batch(buffer, position)
        if size <= 0:
            return batches
        batches.append((position, size, base_offset, delta, max_timestamp))
        position += cython.cast(cython.Py_ssize_t, size)


@cython.cclass
class PlainRules:
    """What a topic demands of batches that it keeps as they came."""

    def __init__(
        self,
        timestamp_before_max_ms: cython.longlong,
        timestamp_after_max_ms: cython.longlong,
        needs_key: cython.bint,
        batch_bytes_max: cython.longlong,
    ) -> None:
        self.timestamp_before_max_ms = timestamp_before_max_ms
        self.timestamp_after_max_ms = timestamp_after_max_ms
        self.needs_key = needs_key
        self.batch_bytes_max = batch_bytes_max


@cython.freelist(4)
@cython.cclass
class CheckedBatch:
    """A batch that may be appended: only its base offset and leader epoch are still to be written into it."""

    def __init__(
        self,
        data: object,
        count: cython.longlong,
        last_offset_delta: cython.longlong,
        max_timestamp: cython.longlong,
        max_timestamp_delta: cython.longlong,
        attributes: cython.longlong,
        producer_id: cython.longlong,
        producer_epoch: cython.longlong,
        base_sequence: cython.longlong,
    ) -> None:
        self.data = data
        self.size = len(data)
        self.count = count
        self.last_offset_delta = last_offset_delta
        self.max_timestamp = max_timestamp
        self.max_timestamp_delta = max_timestamp_delta
        self.attributes = attributes
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence


@cython.ccall
def check_plain(batch_bytes: object, rules: PlainRules, now_ms: cython.longlong) -> CheckedBatch:
    """The one batch that fills the bytes, if there is nothing to refuse, decompress or change in it; None for
    every other batch, about which this says nothing."""
    buffer: cython.const[cython.uchar][::1] = batch_bytes
    data: Input = cython.address(buffer[0]) if cython.compiled else buffer
    size: cython.Py_ssize_t = buffer.shape[0]
    if size < HEADER_SIZE or size > rules.batch_bytes_max:
        return None
    if read_number(data, BASE_OFFSET_AT, 8) != 0 or _batch_size(data, 0, size) != size:
        return None
    batch: CheckedBatch = CheckedBatch.__new__(CheckedBatch)
    batch.data = batch_bytes
    batch.size = size
    batch.attributes = read_number(data, ATTRIBUTES_AT, 2)
    batch.last_offset_delta = read_number(data, LAST_OFFSET_DELTA_AT, 4)
    batch.max_timestamp = read_number(data, MAX_TIMESTAMP_AT, 8)
    batch.producer_id = read_number(data, PRODUCER_ID_AT, 8)
    batch.producer_epoch = read_number(data, PRODUCER_EPOCH_AT, 2)
    batch.base_sequence = read_number(data, BASE_SEQUENCE_AT, 4)
    batch.count = read_number(data, RECORD_COUNT_AT, 4)
    # Any other bit means: compressed, timestamps set by a broker, or a marker.
    if (batch.attributes | TRANSACTIONAL_FLAG) != TRANSACTIONAL_FLAG:
        return None
    if batch.count <= 0 or batch.last_offset_delta != batch.count - 1:
        return None
    if batch.count > (size - HEADER_SIZE) // RECORD_SIZE_MIN:
        return None
    if batch.producer_id >= 0 and (batch.producer_epoch < 0 or batch.base_sequence < 0):
        return None
    if not _records_are_plain(buffer, batch, rules, now_ms):
        return None
    crc: cython.longlong = read_number(data, CRC_AT, 4) & 0xFFFFFFFF
    return batch if crc32c(batch_bytes[ATTRIBUTES_AT:]) == crc else None


@cython.cfunc
def _records_are_plain(
    buffer: cython.const[cython.uchar][::1],
    batch: CheckedBatch,
    rules: PlainRules,
    now_ms: cython.longlong,
) -> cython.bint:
    data: Input = cython.address(buffer[0]) if cython.compiled else buffer
    walk: RecordWalk = RecordWalk.__new__(RecordWalk)
    walk.record = Record.__new__(Record)
    walk.index = 0
    walk.position = HEADER_SIZE
    walk.count = batch.count
    walk.base_timestamp = read_number(data, BASE_TIMESTAMP_AT, 8)
    walk.timestamp_min = now_ms - rules.timestamp_before_max_ms
    walk.timestamp_max = LONG_MAX
    if rules.timestamp_after_max_ms <= LONG_MAX - now_ms:
        walk.timestamp_max = now_ms + rules.timestamp_after_max_ms
    walk.needs_key = rules.needs_key
    walk.timestamp_index = batch.count - 1
    if _run(buffer, walk) != 0 or walk.timestamp != batch.max_timestamp:
        return False
    batch.max_timestamp_delta = walk.timestamp_index
    return True
