# cython: boundscheck=False, wraparound=False
"""The commonest frames between brokers: a follower's Fetch in a session, which names one partition that has
got on or none, and its answer, which has the records of one partition or nothing.

The readers take nothing for granted: they refuse whatever is not exactly such a frame, which is then read by
plan (kernels/codec.py), where all forms are known and errors are explained. The request that is written here
has the bytes that kernels/codec_write.py writes by plan. The answer is written in kernels/plain_frames.py."""

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.shared import (
        copy_bytes,
        read_number,
        read_unsigned_varint,
        write_number,
    )
else:
    from barnabas.kernels.shared import (
        copy_bytes,
        read_number,
        read_unsigned_varint,
        write_number,
    )

Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])
Output = cython.typedef(cython.pointer[cython.uchar])

FETCH_KEY = cython.declare(cython.int, 1)
# The versions in which a replica says who it is in a tagged field, and topics have ids.
VERSION_MIN = cython.declare(cython.int, 15)
VERSION_MAX = cython.declare(cython.int, 18)
PLAIN_VERSION_MIN, PLAIN_VERSION_MAX = 15, 18

TOPIC_ID_BYTES = cython.declare(cython.Py_ssize_t, 16)
# From max_wait_ms to the session's epoch, and one partition from its number to the tags after it.
BODY_BYTES = cython.declare(cython.Py_ssize_t, 21)
PARTITION_BYTES = cython.declare(cython.Py_ssize_t, 33)
# No forgotten topics, no rack, and one tagged field: its number, its size, and the replica's id and epoch.
END_BYTES = cython.declare(cython.Py_ssize_t, 18)
REPLICA_STATE_TAG = cython.declare(cython.int, 1)
REPLICA_STATE_BYTES = cython.declare(cython.int, 13)
# The head of an answer: correlation id, no tags, throttle time, error code, session id, number of topics.
ANSWER_HEAD_BYTES = cython.declare(cython.Py_ssize_t, 16)
# From the number of partitions to the replica to read from.
ANSWER_PARTITION_BYTES = cython.declare(cython.Py_ssize_t, 36)


@cython.cclass
class ReplicaFetchFrame:
    """A Fetch of a replica in a session. `topic_id` is None if it names no partition; then the fields after
    it are not set."""

    version = cython.declare(cython.int, visibility="readonly")
    correlation_id = cython.declare(cython.longlong, visibility="readonly")
    client_id = cython.declare(bytes, visibility="readonly")
    replica_id = cython.declare(cython.longlong, visibility="readonly")
    broker_epoch = cython.declare(cython.longlong, visibility="readonly")
    wait_ms = cython.declare(cython.longlong, visibility="readonly")
    bytes_min = cython.declare(cython.longlong, visibility="readonly")
    bytes_max = cython.declare(cython.longlong, visibility="readonly")
    session_id = cython.declare(cython.longlong, visibility="readonly")
    session_epoch = cython.declare(cython.longlong, visibility="readonly")
    topic_id = cython.declare(bytes, visibility="readonly")
    partition = cython.declare(cython.longlong, visibility="readonly")
    leader_epoch = cython.declare(cython.longlong, visibility="readonly")
    fetch_offset = cython.declare(cython.longlong, visibility="readonly")
    last_epoch = cython.declare(cython.longlong, visibility="readonly")
    log_start_offset = cython.declare(cython.longlong, visibility="readonly")
    partition_bytes_max = cython.declare(cython.longlong, visibility="readonly")

    @cython.ccall
    def read(self, buffer: cython.const[cython.uchar][::1]) -> cython.bint:
        """Read the request; False if the frame in the buffer is anything else."""
        frame: Input = cython.address(buffer[0]) if cython.compiled else buffer
        end: cython.Py_ssize_t = buffer.shape[0]
        if end < 11 + BODY_BYTES + 1 + END_BYTES or read_number(frame, 0, 2) != FETCH_KEY:
            return False
        self.version = read_number(frame, 2, 2)
        if self.version < VERSION_MIN or self.version > VERSION_MAX:
            return False
        self.correlation_id = read_number(frame, 4, 4)
        length: cython.longlong = read_number(frame, 8, 2)
        if length < 0 or length > end - 11 - BODY_BYTES - 1 - END_BYTES:
            return False
        position: cython.Py_ssize_t = 10 + cython.cast(cython.Py_ssize_t, length)
        self.client_id = copy_bytes(frame, 10, position)
        # No tags of the header. The level of isolation, after three numbers, is nothing to a replica.
        if frame[position] != 0:
            return False
        position += 1
        self.wait_ms = read_number(frame, position, 4)
        self.bytes_min = read_number(frame, position + 4, 4)
        self.bytes_max = read_number(frame, position + 8, 4)
        self.session_id = read_number(frame, position + 13, 4)
        self.session_epoch = read_number(frame, position + 17, 4)
        position = self._read_partition(frame, position + BODY_BYTES, end)
        return position > 0 and self._read_end(frame, position, end)

    @cython.cfunc
    def _read_partition(
        self, frame: Input, position: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Read what follows the head: no topic, or one with one partition. Where it ends; 0 if it is anything
        else."""
        self.topic_id = None
        # The numbers of elements are written as one more.
        if frame[position] == 1:
            return position + 1
        # The number of topics, an id, the number of partitions, the partition, no tags of the topic.
        if frame[position] != 2 or end - position != 1 + TOPIC_ID_BYTES + 1 + PARTITION_BYTES + 1 + END_BYTES:
            return 0
        self.topic_id = copy_bytes(frame, position + 1, position + 1 + TOPIC_ID_BYTES)
        position += 1 + TOPIC_ID_BYTES
        if frame[position] != 2:
            return 0
        position += 1
        self.partition = read_number(frame, position, 4)
        self.leader_epoch = read_number(frame, position + 4, 4)
        self.fetch_offset = read_number(frame, position + 8, 8)
        self.last_epoch = read_number(frame, position + 16, 4)
        self.log_start_offset = read_number(frame, position + 20, 8)
        self.partition_bytes_max = read_number(frame, position + 28, 4)
        # No tags of the partition and of the topic.
        if frame[position + 32] != 0 or frame[position + 33] != 0:
            return 0
        return position + PARTITION_BYTES + 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _read_end(self, frame: Input, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        if end - position != END_BYTES or frame[position] != 1 or frame[position + 1] != 1:
            return False
        if frame[position + 2] != 1 or frame[position + 3] != REPLICA_STATE_TAG:
            return False
        if frame[position + 4] != REPLICA_STATE_BYTES or frame[position + 17] != 0:
            return False
        self.replica_id = read_number(frame, position + 5, 4)
        self.broker_epoch = read_number(frame, position + 9, 8)
        return True


def write_replica_fetch(
    version: cython.int,
    correlation_id: cython.longlong,
    client_id: bytes,
    replica_id: cython.longlong,
    broker_epoch: cython.longlong,
    wait_ms: cython.longlong,
    bytes_min: cython.longlong,
    bytes_max: cython.longlong,
    session_id: cython.longlong,
    session_epoch: cython.longlong,
    topic_id: object,
    partition: cython.longlong,
    leader_epoch: cython.longlong,
    fetch_offset: cython.longlong,
    last_epoch: cython.longlong,
    log_start_offset: cython.longlong,
    partition_bytes_max: cython.longlong,
) -> bytearray:
    """The frame of such a request, with its size in front. If `topic_id` is None it names no partition, and
    what comes after is not used."""
    length: cython.Py_ssize_t = len(client_id)
    request: bytearray = bytearray(length + 150)
    memory: cython.uchar[::1] = request
    frame: Output = cython.address(memory[0]) if cython.compiled else memory
    position: cython.Py_ssize_t = write_number(frame, 4, 2, FETCH_KEY)
    position = write_number(frame, position, 2, version)
    position = write_number(frame, position, 4, correlation_id)
    position = write_number(frame, position, 2, length)
    request[position : position + length] = client_id
    # No tags of the header.
    position = write_number(frame, position + length, 1, 0)
    position = write_number(frame, position, 4, wait_ms)
    position = write_number(frame, position, 4, bytes_min)
    position = write_number(frame, position, 4, bytes_max)
    position = write_number(frame, position, 1, 0)
    position = write_number(frame, position, 4, session_id)
    position = write_number(frame, position, 4, session_epoch)
    if topic_id is None:
        position = write_number(frame, position, 1, 1)
    else:
        position = write_number(frame, position, 1, 2)
        request[position : position + TOPIC_ID_BYTES] = topic_id
        position = write_number(frame, position + TOPIC_ID_BYTES, 1, 2)
        position = write_number(frame, position, 4, partition)
        position = write_number(frame, position, 4, leader_epoch)
        position = write_number(frame, position, 8, fetch_offset)
        position = write_number(frame, position, 4, last_epoch)
        position = write_number(frame, position, 8, log_start_offset)
        position = write_number(frame, position, 4, partition_bytes_max)
        position = write_number(frame, position, 2, 0)
    # No forgotten topics, no rack; one tagged field.
    position = write_number(frame, position, 1, 1)
    position = write_number(frame, position, 1, 1)
    position = write_number(frame, position, 1, 1)
    position = write_number(frame, position, 1, REPLICA_STATE_TAG)
    position = write_number(frame, position, 1, REPLICA_STATE_BYTES)
    position = write_number(frame, position, 4, replica_id)
    position = write_number(frame, position, 8, broker_epoch)
    position = write_number(frame, position, 1, 0)
    write_number(frame, 0, 4, position - 4)
    memory = None
    del request[position:]
    return request


@cython.cclass
class FetchedFrame:
    """An answer without an error, with records of one partition or with nothing. `topic_id` is None if it has
    nothing; then the fields after it are not set. The records are `size` bytes from `start` on."""

    correlation_id = cython.declare(cython.longlong, visibility="readonly")
    session_id = cython.declare(cython.longlong, visibility="readonly")
    topic_id = cython.declare(bytes, visibility="readonly")
    partition = cython.declare(cython.longlong, visibility="readonly")
    high_watermark = cython.declare(cython.longlong, visibility="readonly")
    log_start_offset = cython.declare(cython.longlong, visibility="readonly")
    start = cython.declare(cython.Py_ssize_t, visibility="readonly")
    size = cython.declare(cython.Py_ssize_t, visibility="readonly")

    @cython.ccall
    def read(self, buffer: cython.const[cython.uchar][::1]) -> cython.bint:
        """Read the answer, without its size in front; False if the frame is anything else."""
        frame: Input = cython.address(buffer[0]) if cython.compiled else buffer
        end: cython.Py_ssize_t = buffer.shape[0]
        if end < ANSWER_HEAD_BYTES + 1:
            return False
        self.correlation_id = read_number(frame, 0, 4)
        # No tags of the header, no throttle time, no error.
        if frame[4] != 0 or read_number(frame, 5, 4) != 0 or read_number(frame, 9, 2) != 0:
            return False
        self.session_id = read_number(frame, 11, 4)
        self.topic_id = None
        if frame[15] == 1:
            return end == ANSWER_HEAD_BYTES + 1 and frame[ANSWER_HEAD_BYTES] == 0
        return frame[15] == 2 and self._read_partition(frame, ANSWER_HEAD_BYTES, end)

    @cython.cfunc
    def _read_partition(
        self, frame: Input, position: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.bint:
        # After the partition: at least the length of the records, and three times no tags.
        if end - position < TOPIC_ID_BYTES + ANSWER_PARTITION_BYTES + 4:
            return False
        topic: cython.Py_ssize_t = position
        position += TOPIC_ID_BYTES
        # One partition, no error, no list of aborted transactions, no other replica to read from.
        if frame[position] != 2 or read_number(frame, position + 5, 2) != 0:
            return False
        if frame[position + 31] != 0 or read_number(frame, position + 32, 4) != -1:
            return False
        self.partition = read_number(frame, position + 1, 4)
        self.high_watermark = read_number(frame, position + 7, 8)
        self.log_start_offset = read_number(frame, position + 23, 8)
        length: cython.longlong
        length, position = read_unsigned_varint(frame, position + ANSWER_PARTITION_BYTES, end)
        self.start = position
        self.size = length - 1
        if position < 0 or length < 1 or self.size != end - position - 3:
            return False
        self.topic_id = copy_bytes(frame, topic, topic + TOPIC_ID_BYTES)
        return frame[end - 3] == 0 and frame[end - 2] == 0 and frame[end - 1] == 0
