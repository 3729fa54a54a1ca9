# cython: boundscheck=False, wraparound=False
"""The commonest frames: a Produce of one batch to one partition, outside transactions, how it is carried out
and answered; and the answer to a Fetch with the records of one partition, without an error.

ProduceFrame takes nothing for granted: it refuses whatever is not exactly such a frame, which is then read by
plan (kernels/codec.py), where all forms are known and errors are explained. The answers written here have the
bytes that kernels/codec_write.py writes by plan."""

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.batches import CheckedBatch, check_plain
    from cython.cimports.barnabas.kernels.log_end import AppendResult, LogEnd, PartitionEnd, Permit
    from cython.cimports.barnabas.kernels.shared import (
        copy_bytes,
        read_number,
        read_unsigned_varint,
        write_number,
        write_unsigned_varint,
    )
else:
    from barnabas.kernels.batches import CheckedBatch, check_plain
    from barnabas.kernels.log_end import AppendResult, LogEnd, PartitionEnd, Permit
    from barnabas.kernels.shared import (
        copy_bytes,
        read_number,
        read_unsigned_varint,
        write_number,
        write_unsigned_varint,
    )

Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])
Output = cython.typedef(cython.pointer[cython.uchar])

PRODUCE_MIN = cython.declare(cython.int, 3)
PRODUCE_MAX = cython.declare(cython.int, 13)
PRODUCE_FLEXIBLE_FROM = cython.declare(cython.int, 9)
FETCH_SESSIONS_FROM = cython.declare(cython.int, 7)
FETCH_FLEXIBLE_FROM = cython.declare(cython.int, 12)
# In both APIs:
LOG_START_FROM = cython.declare(cython.int, 5)
TOPIC_ID_FROM = cython.declare(cython.int, 13)

ACKS_ALL = cython.declare(cython.int, -1)
ACKS_LEADER = cython.declare(cython.int, 1)
TRANSACTIONAL_FLAG = cython.declare(cython.int, 0x10)
# One call answers at most this many frames; then other connections have their turn.
ANSWERS_MAX = cython.declare(cython.int, 64)
# A connection keeps at most this many permits.
PERMITS_MAX = cython.declare(cython.int, 1000)

# After the records of a flexible answer to a Fetch: no tags of the partition, the topic and the answer.
FETCHED_TAIL = b"\0\0\0"


@cython.cclass
class ProduceFrame:
    """A Produce request of one batch for one partition, outside transactions. `topic` is the topic's name or
    id as it was sent; the records are `size` bytes from `start` on."""

    version = cython.declare(cython.int, visibility="readonly")
    correlation_id = cython.declare(cython.longlong, visibility="readonly")
    client_id = cython.declare(bytes, visibility="readonly")
    acks = cython.declare(cython.int, visibility="readonly")
    timeout_ms = cython.declare(cython.longlong, visibility="readonly")
    topic = cython.declare(bytes, visibility="readonly")
    partition = cython.declare(cython.longlong, visibility="readonly")
    start = cython.declare(cython.Py_ssize_t, visibility="readonly")
    size = cython.declare(cython.Py_ssize_t, visibility="readonly")

    @cython.ccall
    def read(self, buffer: cython.const[cython.uchar][::1]) -> cython.bint:
        """Read the request; False if the frame in the buffer is anything else."""
        frame: Input = cython.address(buffer[0]) if cython.compiled else buffer
        end: cython.Py_ssize_t = buffer.shape[0]
        if end < 36 or read_number(frame, 0, 2) != 0:
            return False
        self.version = read_number(frame, 2, 2)
        if self.version < PRODUCE_MIN or self.version > PRODUCE_MAX:
            return False
        self.correlation_id = read_number(frame, 4, 4)
        length: cython.longlong = read_number(frame, 8, 2)
        position: cython.Py_ssize_t = 10 + (cython.cast(cython.Py_ssize_t, length) if length > 0 else 0)
        if length < -1 or position > end - 25:
            return False
        self.client_id = copy_bytes(frame, 10, position) if length >= 0 else None
        if self.version < PRODUCE_FLEXIBLE_FROM:
            return self._read_old(buffer, position)
        # No tags of the header, and no transactional id.
        if frame[position] != 0 or frame[position + 1] != 0:
            return False
        return self._read_flexible(buffer, position + 2)

    @cython.cfunc
    def _read_old(self, buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t) -> cython.bint:
        frame: Input = cython.address(buffer[0]) if cython.compiled else buffer
        end: cython.Py_ssize_t = buffer.shape[0]
        # No transactional id, acks, a timeout, one topic, the length of its name.
        if (
            end - position < 14
            or read_number(frame, position, 2) != -1
            or read_number(frame, position + 8, 4) != 1
        ):
            return False
        self.acks = read_number(frame, position + 2, 2)
        self.timeout_ms = read_number(frame, position + 4, 4)
        length: cython.longlong = read_number(frame, position + 12, 2)
        name: cython.Py_ssize_t = position + 14
        # After the name: one partition, its number, the length of the records, which end the frame.
        if length < 1 or length > end - name - 12:
            return False
        position = name + cython.cast(cython.Py_ssize_t, length)
        self.topic = copy_bytes(frame, name, position)
        self.partition = read_number(frame, position + 4, 4)
        self.start = position + 12
        self.size = read_number(frame, position + 8, 4)
        return read_number(frame, position, 4) == 1 and self.size == end - self.start

    @cython.cfunc
    def _read_flexible(
        self, buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t
    ) -> cython.bint:
        frame: Input = cython.address(buffer[0]) if cython.compiled else buffer
        end: cython.Py_ssize_t = buffer.shape[0]
        self.acks = read_number(frame, position, 2)
        # After acks and a timeout: one topic.
        if end - position < 23 or frame[position + 6] != 2:
            return False
        self.timeout_ms = read_number(frame, position + 2, 4)
        length: cython.longlong = 17
        name: cython.Py_ssize_t = position + 7
        if self.version < TOPIC_ID_FROM:
            length, name = read_unsigned_varint(frame, name, end)
        # Lengths of this kind are written as one more.
        length -= 1
        # After the name: one partition, its number, the length of the records; three times no tags.
        if name < 0 or length < 1 or length > end - name - 9:
            return False
        position = name + cython.cast(cython.Py_ssize_t, length)
        if frame[position] != 2:
            return False
        self.topic = copy_bytes(frame, name, position)
        self.partition = read_number(frame, position + 1, 4)
        length, position = read_unsigned_varint(frame, position + 5, end)
        self.start = position
        self.size = length - 1
        if position < 0 or length < 1 or self.size != end - position - 3:
            return False
        return frame[end - 3] == 0 and frame[end - 2] == 0 and frame[end - 1] == 0


@cython.cfunc
def _put_partition(
    frame: Output,
    position: cython.Py_ssize_t,
    version: cython.int,
    flexible: cython.bint,
    partition: cython.longlong,
    first_number: cython.longlong,
    second_number: cython.longlong,
    log_start_offset: cython.longlong,
) -> cython.Py_ssize_t:
    """What both answers say in the same way: one partition, its number, no error, two offsets or times, and
    from version 5 on the log's start."""
    position = write_number(frame, position, 1, 2) if flexible else write_number(frame, position, 4, 1)
    position = write_number(frame, position, 4, partition)
    position = write_number(frame, position, 2, 0)
    position = write_number(frame, position, 8, first_number)
    position = write_number(frame, position, 8, second_number)
    return write_number(frame, position, 8, log_start_offset) if version >= LOG_START_FROM else position


@cython.ccall
def write_produced(
    version: cython.int,
    correlation_id: cython.longlong,
    topic: bytes,
    partition: cython.longlong,
    first_offset: cython.longlong,
    log_append_time: cython.longlong,
    log_start_offset: cython.longlong,
) -> bytearray:
    """The frame that says that a batch was appended. `topic` is the topic's name or id."""
    length: cython.Py_ssize_t = len(topic)
    flexible: cython.bint = version >= PRODUCE_FLEXIBLE_FROM
    reply: bytearray = bytearray(length + 72)
    memory: cython.uchar[::1] = reply
    frame: Output = cython.address(memory[0]) if cython.compiled else memory
    position: cython.Py_ssize_t = write_number(frame, 4, 4, correlation_id)
    if flexible:
        # No tags of the header; one topic.
        position = write_number(frame, position, 2, 2)
        if version < TOPIC_ID_FROM:
            position = write_unsigned_varint(frame, position, length + 1)
    else:
        position = write_number(frame, position, 4, 1)
        position = write_number(frame, position, 2, length)
    reply[position : position + length] = topic
    position = _put_partition(
        frame,
        position + length,
        version,
        flexible,
        partition,
        first_offset,
        log_append_time,
        log_start_offset,
    )
    if flexible:
        # No record errors, no message, no tags of partition and topic; then the throttle time and no tags.
        position = write_number(frame, position, 1, 1)
        position = write_number(frame, position, 3, 0)
        position = write_number(frame, position, 5, 0)
    else:
        if version >= 8:
            position = write_number(frame, position, 4, 0)
            position = write_number(frame, position, 2, -1)
        position = write_number(frame, position, 4, 0)
    write_number(frame, 0, 4, position - 4)
    memory = None
    del reply[position:]
    return reply


@cython.cclass
class DeferredReply:
    """The answer to a Produce that cannot be sent yet: it, or one before it on the same connection, waits
    until its batch is committed. `partition` is None if this one itself need not wait.

    What else it has of the request is for an answer with an error, if the batch is not committed."""

    partition = cython.declare(PartitionEnd, visibility="readonly")
    leader_epoch = cython.declare(cython.longlong, visibility="readonly")
    end_offset = cython.declare(cython.longlong, visibility="readonly")
    timeout_ms = cython.declare(cython.longlong, visibility="readonly")
    version = cython.declare(cython.int, visibility="readonly")
    correlation_id = cython.declare(cython.longlong, visibility="readonly")
    topic = cython.declare(bytes, visibility="readonly")
    index = cython.declare(cython.longlong, visibility="readonly")
    reply = cython.declare(bytearray, visibility="readonly")


@cython.cclass
class PlainProduces:
    """The short way of one connection's Produces.

    `ask(client_id, version, topic, partition)` asks the gate: it returns a permit to write, or raises
    `refusal`. The permits are kept for as long as client id and version of the requests stay the same."""

    ask = cython.declare(object)
    refusal = cython.declare(object)
    frame_bytes_max = cython.declare(cython.longlong)
    permits = cython.declare(dict, visibility="readonly")
    client_id = cython.declare(bytes)
    version = cython.declare(cython.int)
    frame = cython.declare(ProduceFrame)
    # What the last call of `answer` did: the bytes of the frames that it took, how many they are, and the
    # answers that have to wait.
    bytes_answered = cython.declare(cython.Py_ssize_t, visibility="readonly")
    answered = cython.declare(cython.int, visibility="readonly")
    deferred = cython.declare(list, visibility="readonly")
    # Partitions with appends that nobody has been told about yet, and the one of the last append.
    appended = cython.declare(list)
    partition = cython.declare(PartitionEnd)

    def __init__(self, ask: object, refusal: object, frame_bytes_max: cython.longlong) -> None:
        self.ask = ask
        self.refusal = refusal
        self.frame_bytes_max = frame_bytes_max
        self.permits = {}
        self.client_id = None
        self.version = -1
        self.frame = ProduceFrame()
        self.deferred = []
        self.appended = []
        self.partition = None

    def answer(self, arrived: object, now_ms: cython.longlong, defers: cython.bint = False) -> bytearray:
        """Append the batches of the frames at the beginning of `arrived`, each with its size in front, and
        return their answers. It ends at the first frame that is not plain or that would be refused, which is
        left as it came.

        The answers from the first one on that has to wait for replicas are in `deferred` instead; all of them
        if `defers`, because an earlier one waits."""
        buffer: cython.const[cython.uchar][::1] = arrived
        frames: Input = cython.address(buffer[0]) if cython.compiled else buffer
        end: cython.Py_ssize_t = buffer.shape[0]
        position: cython.Py_ssize_t = 0
        size: cython.longlong
        frame: ProduceFrame = self.frame
        replies: bytearray = bytearray()
        self.answered = 0
        self.deferred = []
        while self.answered < ANSWERS_MAX and end - position >= 4:
            size = read_number(frames, position, 4)
            if size < 0 or size > self.frame_bytes_max or size > end - position - 4:
                break
            if not frame.read(buffer[position + 4 : position + 4 + size]):
                break
            frame.start += position + 4
            try:
                result: AppendResult = self._append(arrived, now_ms)
            except self.refusal:
                break
            if result is None:
                break
            reply = write_produced(
                frame.version,
                frame.correlation_id,
                frame.topic,
                frame.partition,
                result.first_offset,
                result.log_append_time,
                result.log_start_offset,
            )
            if self._waits(result):
                defers = True
            if defers:
                self._defer(result, reply)
            else:
                replies += reply
            position += 4 + cython.cast(cython.Py_ssize_t, size)
            self.answered += 1
        self.bytes_answered = position
        if self.appended:
            self._wake()
        return replies

    @cython.cfunc
    def _waits(self, result: AppendResult) -> cython.bint:
        """Whether the client wants the batch to be committed, and it is not."""
        if self.frame.acks != ACKS_ALL:
            return False
        partition: PartitionEnd = self.partition
        return partition.log.high_watermark <= result.last_offset

    @cython.cfunc
    def _defer(self, result: AppendResult, reply: bytearray) -> object:
        frame: ProduceFrame = self.frame
        deferred: DeferredReply = DeferredReply()
        if self._waits(result):
            deferred.partition = self.partition
            deferred.leader_epoch = self.partition.leader_epoch
            deferred.end_offset = result.last_offset + 1
            deferred.timeout_ms = frame.timeout_ms
            deferred.version = frame.version
            deferred.correlation_id = frame.correlation_id
            deferred.topic = frame.topic
            deferred.index = frame.partition
        deferred.reply = reply
        self.deferred.append(deferred)

    @cython.cfunc
    def _wake(self) -> object:
        """Followers that wait get all the batches of this call at once."""
        appended: list = self.appended
        self.appended = []
        for each in appended:
            partition: PartitionEnd = each
            partition.wake_after_append()

    @cython.cfunc
    def _append(self, arrived: object, now_ms: cython.longlong) -> AppendResult:
        """Append the batch of the frame that was read; None if it has to go the ordinary way."""
        frame: ProduceFrame = self.frame
        if frame.acks != ACKS_ALL and frame.acks != ACKS_LEADER:
            return None
        permit: Permit = self._permit()
        if permit.plain_rules is None:
            return None
        data = arrived[frame.start : frame.start + frame.size]
        batch: CheckedBatch = check_plain(data, permit.plain_rules, now_ms)
        if batch is None or batch.attributes & TRANSACTIONAL_FLAG:
            return None
        partition: PartitionEnd = permit.partition
        log: LogEnd = partition.log
        # A flush can fail after the batch was written. The ordinary way tells the client so.
        if log.log_end_offset + batch.last_offset_delta >= log.flush_at:
            return None
        result: AppendResult
        if permit.commits_at_once:
            result = partition.append(batch)
        else:
            result = partition.append_silently(batch)
            if not self.appended or self.appended[len(self.appended) - 1] is not partition:
                self.appended.append(partition)
        partition.plain_produces += 1
        self.partition = partition
        return result

    @cython.cfunc
    def _permit(self) -> Permit:
        """The permit to write where the frame says, from those of this connection or from the gate."""
        frame: ProduceFrame = self.frame
        if frame.version != self.version or frame.client_id != self.client_id:
            self.permits.clear()
            self.version = frame.version
            self.client_id = frame.client_id
        key = (frame.topic, frame.partition)
        permit: Permit = self.permits.get(key)
        if permit is None or permit.partition is None:
            if len(self.permits) >= PERMITS_MAX:
                self.permits.clear()
            self.permits.pop(key, None)
            permit = self.ask(frame.client_id, frame.version, frame.topic, frame.partition)
            self.permits[key] = permit
        return permit


def write_fetched(
    version: cython.int,
    correlation_id: cython.longlong,
    session_id: cython.longlong,
    topic: bytes,
    partition: cython.longlong,
    high_watermark: cython.longlong,
    last_stable_offset: cython.longlong,
    log_start_offset: cython.longlong,
    size: cython.longlong,
) -> bytearray:
    """The frame up to its `size` bytes of records; from version 12 on FETCHED_TAIL comes after them. `topic`
    is the topic's name or id."""
    length: cython.Py_ssize_t = len(topic)
    flexible: cython.bint = version >= FETCH_FLEXIBLE_FROM
    reply: bytearray = bytearray(length + 100)
    memory: cython.uchar[::1] = reply
    frame: Output = cython.address(memory[0]) if cython.compiled else memory
    position: cython.Py_ssize_t = write_number(frame, 4, 4, correlation_id)
    # From version 12 on the header has tags, none here; then the throttle time.
    position = write_number(frame, position, 5 if flexible else 4, 0)
    if version >= FETCH_SESSIONS_FROM:
        position = write_number(frame, position, 2, 0)
        position = write_number(frame, position, 4, session_id)
    position = write_number(frame, position, 1, 2) if flexible else write_number(frame, position, 4, 1)
    if not flexible:
        position = write_number(frame, position, 2, length)
    elif version < TOPIC_ID_FROM:
        position = write_unsigned_varint(frame, position, length + 1)
    reply[position : position + length] = topic
    position = _put_partition(
        frame,
        position + length,
        version,
        flexible,
        partition,
        high_watermark,
        last_stable_offset,
        log_start_offset,
    )
    # No list of aborted transactions, and from version 11 on no other replica to read from.
    position = write_number(frame, position, 1, 0) if flexible else write_number(frame, position, 4, -1)
    if version >= 11:
        position = write_number(frame, position, 4, -1)
    position = (
        write_unsigned_varint(frame, position, size + 1)
        if flexible
        else write_number(frame, position, 4, size)
    )
    write_number(frame, 0, 4, position + size + (3 if flexible else 0) - 4)
    memory = None
    del reply[position:]
    return reply
