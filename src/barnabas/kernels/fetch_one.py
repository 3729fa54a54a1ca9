"""Writes the commonest answer to a Fetch: records of one partition, no error, nothing else to tell.

Held equal to what kernels/codec_write.py writes by plan."""

import cython

SESSIONS_FROM = cython.declare(cython.int, 7)
FLEXIBLE_FROM = cython.declare(cython.int, 12)
TOPIC_ID_FROM = cython.declare(cython.int, 13)


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


def write_head(
    version: cython.int,
    ids: tuple[cython.longlong, cython.longlong],
    place: tuple[bytes, cython.longlong],
    offsets: tuple[cython.longlong, cython.longlong, cython.longlong],
    size: cython.longlong,
) -> bytearray:
    """The frame up to its `size` bytes of records; from version 12 on `TAIL` comes after them.

    `ids` are those of correlation and session, `place` is the topic's name or id and the partition, `offsets`
    are the high watermark, the last stable offset and the log's start."""
    topic: bytes = place[0]
    length: cython.Py_ssize_t = len(topic)
    flexible: cython.bint = version >= FLEXIBLE_FROM
    reply: bytearray = bytearray(length + 100)
    frame: cython.uchar[::1] = reply
    position: cython.Py_ssize_t = _put(frame, 4, 4, ids[0])
    # From version 12 on the header has tags, none here; then the throttle time.
    position = _put(frame, position, 5 if flexible else 4, 0)
    if version >= SESSIONS_FROM:
        position = _put(frame, position, 2, 0)
        position = _put(frame, position, 4, ids[1])
    position = _put(frame, position, 1, 2) if flexible else _put(frame, position, 4, 1)
    if not flexible:
        position = _put(frame, position, 2, length)
    elif version < TOPIC_ID_FROM:
        position = _put_length(frame, position, length)
    reply[position : position + length] = topic
    position += length
    position = _put(frame, position, 1, 2) if flexible else _put(frame, position, 4, 1)
    position = _put(frame, position, 4, place[1])
    position = _put(frame, position, 2, 0)
    position = _put(frame, position, 8, offsets[0])
    position = _put(frame, position, 8, offsets[1])
    if version >= 5:
        position = _put(frame, position, 8, offsets[2])
    # No list of aborted transactions, and from version 11 on no other replica to read from.
    position = _put(frame, position, 1, 0) if flexible else _put(frame, position, 4, -1)
    if version >= 11:
        position = _put(frame, position, 4, -1)
    position = _put_length(frame, position, size) if flexible else _put(frame, position, 4, size)
    _put(frame, 0, 4, position + size + (3 if flexible else 0) - 4)
    frame = None
    del reply[position:]
    return reply


# No tags of the partition, the topic and the answer.
TAIL = b"\0\0\0"
