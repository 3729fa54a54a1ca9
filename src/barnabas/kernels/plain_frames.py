"""The commonest frames: a Produce of one batch to one partition, outside transactions, how it is carried out
and answered; and the answer to a Fetch with the records of one partition, no error, nothing else to tell.

`read_produce` takes nothing for granted: whatever is not exactly such a frame gives None, and is read again
by plan (kernels/codec.py), which knows all forms and says what is wrong. What is written here is what
kernels/codec_write.py writes by plan."""

import cython

PRODUCE_MIN = cython.declare(cython.int, 3)
PRODUCE_MAX = cython.declare(cython.int, 13)
PRODUCE_FLEXIBLE_FROM = cython.declare(cython.int, 9)
FETCH_SESSIONS_FROM = cython.declare(cython.int, 7)
FETCH_FLEXIBLE_FROM = cython.declare(cython.int, 12)
# Of both.
LOG_START_FROM = cython.declare(cython.int, 5)
TOPIC_ID_FROM = cython.declare(cython.int, 13)

ACKS_ALL = cython.declare(cython.int, -1)
ACKS_LEADER = cython.declare(cython.int, 1)
TRANSACTIONAL_FLAG = cython.declare(cython.int, 0x10)
# Of a batch, what its CRC covers.
CRC_FROM = cython.declare(cython.int, 21)
# So many frames are answered at a time; then others have their turn.
ANSWERS_MAX = cython.declare(cython.int, 64)

# Behind the records of a flexible answer to a Fetch: no tags of the partition, the topic and the answer.
FETCHED_TAIL = b"\0\0\0"


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _number(
    frame: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, width: cython.int
) -> cython.longlong:
    """The signed integer at `position`; the caller has checked that it is there."""
    index: cython.Py_ssize_t
    value: cython.longlong = frame[position]
    if value >= 0x80:
        value -= 0x100
    for index in range(position + 1, position + width):
        value = value * 256 + frame[index]
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _length(
    frame: cython.const[cython.uchar][::1], position: cython.Py_ssize_t
) -> tuple[cython.longlong, cython.Py_ssize_t]:
    """The length of something compact and the position after it; -1 where it is null or no such length."""
    raw: cython.longlong = 0
    byte: cython.longlong
    shift: cython.int = 0
    while position < frame.shape[0] and shift < 35:
        byte = frame[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw - 1, position
        shift += 7
    return -1, position


@cython.ccall
@cython.boundscheck(False)
@cython.wraparound(False)
def read_produce(frame: cython.const[cython.uchar][::1]) -> object:
    """(version, correlation id, acks, topic's name or id as bytes, partition, where the records begin, how
    many bytes they are), or None where the frame is anything else."""
    end: cython.Py_ssize_t = frame.shape[0]
    if end < 36 or _number(frame, 0, 2) != 0:
        return None
    version: cython.longlong = _number(frame, 2, 2)
    if version < PRODUCE_MIN or version > PRODUCE_MAX:
        return None
    client: cython.longlong = _number(frame, 8, 2)
    position: cython.Py_ssize_t = 10 + (cython.cast(cython.Py_ssize_t, client) if client > 0 else 0)
    if client < -1 or position > end - 25:
        return None
    if version < PRODUCE_FLEXIBLE_FROM:
        return _read_old(frame, version, position)
    # No tags of the header, and no transactional id.
    if frame[position] != 0 or frame[position + 1] != 0:
        return None
    return _read_flexible(frame, version, position + 2)


@cython.cfunc
@cython.boundscheck(False)
@cython.wraparound(False)
def _read_old(
    frame: cython.const[cython.uchar][::1], version: cython.longlong, position: cython.Py_ssize_t
) -> object:
    end: cython.Py_ssize_t = frame.shape[0]
    # A transactional id, acks, a timeout, one topic, the length of its name.
    if end - position < 14 or _number(frame, position, 2) != -1 or _number(frame, position + 8, 4) != 1:
        return None
    acks: cython.longlong = _number(frame, position + 2, 2)
    length: cython.longlong = _number(frame, position + 12, 2)
    name: cython.Py_ssize_t = position + 14
    # Behind the name: one partition, its number, the length of the records, which end the frame.
    if length < 1 or length > end - name - 12:
        return None
    position = name + cython.cast(cython.Py_ssize_t, length)
    records: cython.longlong = _number(frame, position + 8, 4)
    if _number(frame, position, 4) != 1 or records < 0 or records != end - position - 12:
        return None
    topic: bytes = bytes(frame[name:position])
    return (
        version, _number(frame, 4, 4), acks, topic, _number(frame, position + 4, 4), position + 12, records
    )  # fmt: skip


@cython.cfunc
@cython.boundscheck(False)
@cython.wraparound(False)
def _read_flexible(
    frame: cython.const[cython.uchar][::1], version: cython.longlong, position: cython.Py_ssize_t
) -> object:
    end: cython.Py_ssize_t = frame.shape[0]
    acks: cython.longlong = _number(frame, position, 2)
    # Behind acks and a timeout: one topic.
    if end - position < 23 or frame[position + 6] != 2:
        return None
    length: cython.longlong = 16
    name: cython.Py_ssize_t = position + 7
    if version < TOPIC_ID_FROM:
        length, name = _length(frame, name)
    # Behind the name: one partition, its number, the length of the records; at the end no tags, three times.
    if length < 1 or length > end - name - 9:
        return None
    position = name + cython.cast(cython.Py_ssize_t, length)
    if frame[position] != 2:
        return None
    topic: bytes = bytes(frame[name:position])
    partition: cython.longlong = _number(frame, position + 1, 4)
    length, position = _length(frame, position + 5)
    if length < 0 or length != end - position - 3:
        return None
    if frame[end - 3] != 0 or frame[end - 2] != 0 or frame[end - 1] != 0:
        return None
    return version, _number(frame, 4, 4), acks, topic, partition, position, length


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.wraparound(False)
def _put(
    frame: cython.uchar[::1], position: cython.Py_ssize_t, width: cython.int, value: cython.longlong
) -> cython.Py_ssize_t:
    """Write a number, give the position after it; the caller has made room."""
    index: cython.Py_ssize_t
    for index in range(position + width - 1, position - 1, -1):
        frame[index] = value & 0xFF
        value >>= 8
    return position + width


@cython.cfunc
@cython.boundscheck(False)
@cython.wraparound(False)
def _put_length(
    frame: cython.uchar[::1], position: cython.Py_ssize_t, value: cython.longlong
) -> cython.Py_ssize_t:
    """The length of something compact, which is written as one more."""
    value += 1
    while value >= 0x80:
        frame[position] = (value & 0x7F) | 0x80
        value >>= 7
        position += 1
    frame[position] = value
    return position + 1


@cython.cfunc
@cython.boundscheck(False)
@cython.wraparound(False)
def _put_partition(
    frame: cython.uchar[::1],
    position: cython.Py_ssize_t,
    version: cython.int,
    flexible: cython.bint,
    told: tuple[cython.longlong, tuple[cython.longlong, cython.longlong, cython.longlong]],
) -> cython.Py_ssize_t:
    """What both answers say alike: one partition, its number, no error, two offsets or times, and, from
    version 5 on of both, the log's start."""
    position = _put(frame, position, 1, 2) if flexible else _put(frame, position, 4, 1)
    position = _put(frame, position, 4, told[0])
    position = _put(frame, position, 2, 0)
    position = _put(frame, position, 8, told[1][0])
    position = _put(frame, position, 8, told[1][1])
    return _put(frame, position, 8, told[1][2]) if version >= LOG_START_FROM else position


@cython.ccall
@cython.boundscheck(False)
@cython.wraparound(False)
def write_produced(
    version: cython.int,
    correlation_id: cython.longlong,
    place: tuple[bytes, cython.longlong],
    offsets: tuple[cython.longlong, cython.longlong, cython.longlong],
) -> bytearray:
    """The frame that says that a batch was appended: `place` is the topic's name or id and the partition,
    `offsets` are its first offset, the time the broker gave it or -1, and the log's start."""
    topic: bytes = place[0]
    length: cython.Py_ssize_t = len(topic)
    flexible: cython.bint = version >= PRODUCE_FLEXIBLE_FROM
    reply: bytearray = bytearray(length + 72)
    frame: cython.uchar[::1] = reply
    position: cython.Py_ssize_t = _put(frame, 4, 4, correlation_id)
    if flexible:
        # No tags of the header; one topic.
        position = _put(frame, position, 2, 2)
        if version < TOPIC_ID_FROM:
            position = _put_length(frame, position, length)
    else:
        position = _put(frame, position, 4, 1)
        position = _put(frame, position, 2, length)
    reply[position : position + length] = topic
    position = _put_partition(frame, position + length, version, flexible, (place[1], offsets))
    if flexible:
        # No record errors, no message, no tags of partition and topic; then the throttle time and no tags.
        position = _put(frame, position, 1, 1)
        position = _put(frame, position, 3, 0)
        position = _put(frame, position, 5, 0)
    else:
        if version >= 8:
            position = _put(frame, position, 4, 0)
            position = _put(frame, position, 2, -1)
        position = _put(frame, position, 4, 0)
    _put(frame, 0, 4, position - 4)
    frame = None
    del reply[position:]
    return reply


def answer_produces(
    arrived: object,
    frame_bytes_max: cython.longlong,
    known: dict,
    helpers: tuple,
    now_ms: cython.longlong,
) -> tuple:
    """Append what the frames at the beginning of `arrived` bring, each with its size in front, as long as
    they are such as read_produce reads, nothing is to be refused and nobody else has to confirm it: (bytes of
    these frames, how many they are, their answers). The frame after them is as it came.

    `known` are the partitions (PartitionEnd, kernels/log_end.py) by topic's name or id and number. `helpers`:
    find(version, topic, partition) gives one that is not known, or None; plain_batch (kernels/batches.py);
    the checksum; and the error of an append that changed nothing, which the ordinary way will meet again."""
    frames: cython.const[cython.uchar][::1] = arrived
    end: cython.Py_ssize_t = frames.shape[0]
    position: cython.Py_ssize_t = 0
    size: cython.longlong
    replies: bytearray = bytearray()
    count: cython.int = 0
    while count < ANSWERS_MAX and end - position >= 4:
        size = _number(frames, position, 4)
        if size < 0 or size > frame_bytes_max or size > end - position - 4:
            break
        found = read_produce(frames[position + 4 : position + 4 + size])
        if found is None:
            break
        version, correlation_id, acks, topic, index, start, length = found
        if acks != ACKS_ALL and acks != ACKS_LEADER:
            break
        partition = known.get((topic, index)) or helpers[0](version, topic, index)
        if partition is None or partition.plain_rules is None:
            break
        start += position + 4
        data = arrived[start : start + length]
        batch = helpers[1](data, partition.plain_rules, now_ms)
        if batch is None or batch[6] & TRANSACTIONAL_FLAG or helpers[2](data[CRC_FROM:]) != batch[0]:
            break
        try:
            first = partition.append_plain(data, batch)
        except helpers[3]:
            break
        if first is None:
            break
        offsets = (first, -1, partition.log.log_start_offset)
        replies += write_produced(version, correlation_id, (topic, index), offsets)
        position += 4 + cython.cast(cython.Py_ssize_t, size)
        count += 1
    return position, count, replies


@cython.boundscheck(False)
@cython.wraparound(False)
def write_fetched(
    version: cython.int,
    ids: tuple[cython.longlong, cython.longlong],
    place: tuple[bytes, cython.longlong],
    offsets: tuple[cython.longlong, cython.longlong, cython.longlong],
    size: cython.longlong,
) -> bytearray:
    """The frame up to its `size` bytes of records; from version 12 on FETCHED_TAIL comes after them.

    `ids` are those of correlation and session, `place` is the topic's name or id and the partition, `offsets`
    are the high watermark, the last stable offset and the log's start."""
    topic: bytes = place[0]
    length: cython.Py_ssize_t = len(topic)
    flexible: cython.bint = version >= FETCH_FLEXIBLE_FROM
    reply: bytearray = bytearray(length + 100)
    frame: cython.uchar[::1] = reply
    position: cython.Py_ssize_t = _put(frame, 4, 4, ids[0])
    # From version 12 on the header has tags, none here; then the throttle time.
    position = _put(frame, position, 5 if flexible else 4, 0)
    if version >= FETCH_SESSIONS_FROM:
        position = _put(frame, position, 2, 0)
        position = _put(frame, position, 4, ids[1])
    position = _put(frame, position, 1, 2) if flexible else _put(frame, position, 4, 1)
    if not flexible:
        position = _put(frame, position, 2, length)
    elif version < TOPIC_ID_FROM:
        position = _put_length(frame, position, length)
    reply[position : position + length] = topic
    position = _put_partition(frame, position + length, version, flexible, (place[1], offsets))
    # No list of aborted transactions, and from version 11 on no other replica to read from.
    position = _put(frame, position, 1, 0) if flexible else _put(frame, position, 4, -1)
    if version >= 11:
        position = _put(frame, position, 4, -1)
    position = _put_length(frame, position, size) if flexible else _put(frame, position, 4, size)
    _put(frame, 0, 4, position + size + (3 if flexible else 0) - 4)
    frame = None
    del reply[position:]
    return reply
