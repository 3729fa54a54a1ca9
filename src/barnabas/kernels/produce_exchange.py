# cython: boundscheck=False, wraparound=False
"""A producer's requests of one batch each for one partition, and their plain answers, directly on the socket
of a connection, without the lock of the interpreter: meanwhile other threads append records.

The requests have the bytes that kernels/codec_write.py writes by plan: `prefix` is such a request up to the
records, `suffix` what comes after them. An answer counts as plain if it has the bytes of `answer` except for
the correlation id, the offset, and the two numbers after it. What is not plain stays in the inbox."""

from array import array

import cython

if cython.compiled:
    from cython.cimports.barnabas.kernels.shared import (
        read_number,
        write_number,
        write_unsigned_varint,
    )
    from cython.cimports.barnabas.kernels.system_calls import POLLIN, POLLOUT, poll, pollfd
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.cpython.mem import PyMem_Free, PyMem_Malloc
    from cython.cimports.libc.errno import EAGAIN, EINTR, errno
    from cython.cimports.libc.string import memcmp, memmove
    from cython.cimports.posix.time import CLOCK_MONOTONIC, clock_gettime, timespec
    from cython.cimports.posix.uio import iovec, writev
    from cython.cimports.posix.unistd import read as read_bytes
else:
    import os
    from select import POLLIN, POLLOUT
    from select import poll as poll_of
    from time import monotonic

    from barnabas.kernels.shared import read_number, write_number, write_unsigned_varint

    # Only for the declarations.
    iovec = cython.uchar

    def rest_of(chunks: list, skipped: int) -> list:
        return [memoryview(chunks[0])[skipped:], *chunks[1:]]

    def poll(descriptor: int, events: int, wait_ms: int) -> bool:
        waiting = poll_of()
        waiting.register(descriptor, events)
        return bool(waiting.poll(wait_ms))


Input = cython.typedef(cython.pointer[cython.const[cython.uchar]])
Output = cython.typedef(cython.pointer[cython.uchar])

# At most this many requests in one run.
REQUESTS_MAX = 256
# Up to this many may be without an answer when a run begins.
EARLIER_MAX = 16
SIZE_BYTES = cython.declare(cython.Py_ssize_t, 4)
CORRELATION_ID_AT = cython.declare(cython.Py_ssize_t, 8)
# The offset, the time of the append and the first offset of the log.
NUMBERS_BYTES = cython.declare(cython.Py_ssize_t, 24)
VARINT_BYTES_MAX = cython.declare(cython.Py_ssize_t, 5)
# A request is sent as its head, its batch and its end.
CHUNKS = cython.declare(cython.Py_ssize_t, 3)


@cython.cclass
class ProduceExchange:
    """`clear`, `add` requests, `run`, then look what became of them: `begun` requests were sent, at least in
    part, and there were `answered` answers, those to `earlier` requests first."""

    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    answered = cython.declare(cython.Py_ssize_t, visibility="readonly")
    inbox_start = cython.declare(cython.Py_ssize_t, visibility="readonly")
    inbox_end = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _prefix: bytes
    _suffix: bytes
    _answer: bytes
    _numbers_at: cython.Py_ssize_t
    _in_flight_max: cython.Py_ssize_t
    _earlier: cython.Py_ssize_t
    _correlation_id: cython.longlong
    _is_plain: cython.bint
    # The chunks of all requests, and where they are in memory; those before `_chunk` are sent, and
    # `_skipped` bytes of that one.
    _chunks: list
    _places: cython.pointer[iovec]
    _chunk: cython.Py_ssize_t
    _skipped: cython.Py_ssize_t
    _offsets: cython.longlong[::1]
    _times: cython.longlong[::1]

    def __init__(
        self, prefix: bytes, suffix: bytes, answer: bytes, numbers_at: int, in_flight_max: int
    ) -> None:
        """`numbers_at` is where the numbers begin in `answer`, which begins after its size."""
        self._prefix = prefix
        self._suffix = suffix
        self._answer = answer
        self._numbers_at = numbers_at
        self._in_flight_max = in_flight_max
        if cython.compiled:
            size: cython.size_t = cython.sizeof(iovec) * CHUNKS * REQUESTS_MAX
            self._places = cython.cast(cython.pointer[iovec], PyMem_Malloc(size))
            if self._places == cython.NULL:
                raise MemoryError
        self._offsets = array("q", bytes(8 * (REQUESTS_MAX + EARLIER_MAX)))
        self._times = array("q", bytes(8 * (REQUESTS_MAX + EARLIER_MAX)))
        self.clear(0, 0)

    def __dealloc__(self) -> None:
        if cython.compiled:
            PyMem_Free(self._places)

    @cython.ccall
    def clear(self, first_correlation_id: cython.longlong, earlier: cython.Py_ssize_t) -> object:
        """Start again. The first answer has this correlation id, the next one more, and so on; `earlier` of
        them belong to requests of before."""
        if earlier > EARLIER_MAX:
            raise ValueError(f"at most {EARLIER_MAX} earlier requests, got {earlier}")
        self._correlation_id = first_correlation_id
        self._earlier = earlier
        self.count = self.answered = 0
        self._chunks = []
        self._chunk = self._skipped = 0
        self._is_plain = True
        return None

    @cython.ccall
    def add(self, batch: bytearray) -> object:
        """Add the request for a complete batch, which must not change before it is sent."""
        if self.count == REQUESTS_MAX:
            raise ValueError(f"at most {REQUESTS_MAX} requests")
        size: cython.Py_ssize_t = len(batch)
        start: cython.Py_ssize_t = len(self._prefix)
        head: bytearray = bytearray(self._prefix)
        head.extend(bytes(VARINT_BYTES_MAX))
        out: Output
        if cython.compiled:
            out = cython.cast(Output, PyByteArray_AS_STRING(head))
        else:
            out = head
        end: cython.Py_ssize_t = write_unsigned_varint(out, start, size + 1)
        write_number(out, 0, 4, end + size + len(self._suffix) - SIZE_BYTES)
        correlation_id: cython.longlong = self._correlation_id + self._earlier + self.count
        write_number(out, CORRELATION_ID_AT, 4, correlation_id)
        del head[end:]
        self._place(head, end)
        self._place(batch, size)
        self._chunks.append(self._suffix)
        if cython.compiled:
            place: cython.pointer[iovec] = self._places + len(self._chunks) - 1
            place.iov_base = cython.cast(cython.p_void, cython.cast(cython.p_char, self._suffix))
            place.iov_len = len(self._suffix)
        self.count += 1
        return None

    @cython.cfunc
    def _place(self, chunk: bytearray, size: cython.Py_ssize_t) -> object:
        self._chunks.append(chunk)
        if cython.compiled:
            place: cython.pointer[iovec] = self._places + len(self._chunks) - 1
            place.iov_base = cython.cast(cython.p_void, PyByteArray_AS_STRING(chunk))
            place.iov_len = size
        return None

    def release(self) -> None:
        """Let go of the batches: nothing more will be sent."""
        self._chunks = []

    @property
    def begun(self) -> cython.Py_ssize_t:
        """How many requests were sent, the last of them perhaps not completely."""
        return (self._chunk + CHUNKS - 1 + (1 if self._skipped else 0)) // CHUNKS

    @property
    def rest(self) -> bytes:
        """What is still to be sent of a request that was sent in part."""
        left = self._chunks[self._chunk : CHUNKS * self.begun]
        return b"".join(left)[self._skipped :]

    @property
    def is_plain(self) -> bool:
        """Whether all answers so far were plain, so that the next may be."""
        return self._is_plain

    def outcomes(self) -> list:
        """The offset and the time of the append for each answer."""
        return [(self._offsets[index], self._times[index]) for index in range(self.answered)]

    def run(
        self,
        descriptor: cython.int,
        inbox: bytearray,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        wait_ms: cython.int,
        run_ms: cython.int,
    ) -> None:
        """Send the requests and read answers, until all are sent, no answer came within `wait_ms`, it took
        `run_ms`, or there is something for others to handle: an answer that is not plain, a broken
        connection. In the inbox the bytes from `start` to `end` are there already."""
        self.inbox_start = start
        self.inbox_end = end
        arrived: Output
        if cython.compiled:
            arrived = cython.cast(Output, PyByteArray_AS_STRING(inbox))
        else:
            arrived = inbox
        answer: Input = self._answer
        size: cython.Py_ssize_t = len(self._answer)
        room: cython.Py_ssize_t = len(inbox)
        with cython.nogil:
            self._run(descriptor, arrived, room, answer, size, wait_ms, run_ms)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _run(
        self,
        descriptor: cython.int,
        inbox: Output,
        room: cython.Py_ssize_t,
        answer: Input,
        size: cython.Py_ssize_t,
        wait_ms: cython.int,
        run_ms: cython.int,
    ) -> cython.void:
        allowed: cython.Py_ssize_t
        target: cython.Py_ssize_t
        ends_at: cython.longlong = _now_ms() + run_ms
        while True:
            self._take_answers(inbox, answer, size)
            allowed = min(self.count, self.answered - self._earlier + self._in_flight_max)
            target = CHUNKS * max(allowed, 0)
            if not self._is_plain or (self._chunk < target and not self._send(descriptor, target)):
                return
            if self._chunk == CHUNKS * self.count or _now_ms() >= ends_at:
                return
            if not _wait(descriptor, self._chunk < target, wait_ms):
                return
            if not self._receive(descriptor, inbox, room):
                return

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _take_answers(self, inbox: Output, answer: Input, size: cython.Py_ssize_t) -> cython.void:
        """Read the plain answers in the inbox."""
        numbers: cython.Py_ssize_t
        start: cython.Py_ssize_t
        while self.inbox_end - self.inbox_start >= SIZE_BYTES:
            start = self.inbox_start + SIZE_BYTES
            # More answers than requests are not for us to judge.
            is_expected: cython.bint = self.answered < self._earlier + self.count
            if not is_expected or read_number(inbox, self.inbox_start, 4) != size:
                self._is_plain = False
                return
            if self.inbox_end - start < size:
                return
            numbers = self._numbers_at
            if (
                read_number(inbox, start, 4) != self._correlation_id + self.answered
                or not _is_same(inbox, start + 4, answer, 4, numbers)
                or not _is_same(inbox, start + numbers + NUMBERS_BYTES, answer, numbers + NUMBERS_BYTES, size)
            ):
                self._is_plain = False
                return
            self._offsets[self.answered] = read_number(inbox, start + numbers, 8)
            self._times[self.answered] = read_number(inbox, start + numbers + 8, 8)
            self.answered += 1
            self.inbox_start = start + size

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _send(self, descriptor: cython.int, target: cython.Py_ssize_t) -> cython.bint:
        """Send as much of the chunks before `target` as the system takes now; False if the connection is
        broken."""
        written: cython.Py_ssize_t
        if cython.compiled:
            place: cython.pointer[iovec] = self._places + self._chunk
            written = writev(descriptor, place, cython.cast(cython.int, target - self._chunk))
            if written < 0:
                return errno in (EAGAIN, EINTR)
            while self._chunk < target and written >= cython.cast(cython.Py_ssize_t, place.iov_len):
                written -= cython.cast(cython.Py_ssize_t, place.iov_len)
                self._chunk += 1
                self._skipped = 0
                place += 1
            if written > 0:
                self._skipped += written
                place.iov_base = cython.cast(cython.p_char, place.iov_base) + written
                place.iov_len -= written
            return True
        try:
            written = os.writev(descriptor, rest_of(self._chunks[self._chunk : target], self._skipped))
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        written += self._skipped
        while self._chunk < target and written >= len(self._chunks[self._chunk]):
            written -= len(self._chunks[self._chunk])
            self._chunk += 1
        self._skipped = written
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _receive(self, descriptor: cython.int, inbox: Output, room: cython.Py_ssize_t) -> cython.bint:
        """Receive what is there; False if the connection is at its end or broken, or the inbox is full."""
        left: cython.Py_ssize_t = self.inbox_end - self.inbox_start
        if self.inbox_start > 0:
            # Parts of an answer move to the start.
            if cython.compiled:
                memmove(inbox, inbox + self.inbox_start, left)
            else:
                inbox[:left] = inbox[self.inbox_start : self.inbox_end]
            self.inbox_start, self.inbox_end = 0, left
        if left == room:
            return False
        received: cython.Py_ssize_t
        if cython.compiled:
            received = read_bytes(descriptor, inbox + left, room - left)
            if received < 0:
                return errno in (EAGAIN, EINTR)
        else:
            try:
                data = os.read(descriptor, room - left)
            except (BlockingIOError, InterruptedError):
                return True
            except OSError:
                return False
            received = len(data)
            inbox[left : left + received] = data
        self.inbox_end = left + received
        return received > 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_same(
    data: Output, position: cython.Py_ssize_t, other: Input, start: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.bint:
    """Whether the bytes of `other` from `start` to `end` are in `data` at the position."""
    if cython.compiled:
        return memcmp(data + position, other + start, end - start) == 0
    return bool(data[position : position + end - start] == other[start:end])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _wait(descriptor: cython.int, sends: cython.bint, wait_ms: cython.int) -> cython.bint:
    """Wait until something has arrived, or also until something can be sent; False after `wait_ms`."""
    if cython.compiled:
        entry = cython.declare(pollfd)
        entry.fd = descriptor
        entry.events = POLLIN | POLLOUT if sends else POLLIN
        entry.revents = 0
        return poll(cython.address(entry), 1, wait_ms) > 0
    return poll(descriptor, POLLIN | POLLOUT if sends else POLLIN, wait_ms)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _now_ms() -> cython.longlong:
    if cython.compiled:
        now = cython.declare(timespec)
        clock_gettime(CLOCK_MONOTONIC, cython.address(now))
        return now.tv_sec * 1000 + now.tv_nsec // 1_000_000
    return int(monotonic() * 1000)
