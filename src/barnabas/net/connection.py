"""One framed connection: cuts the byte stream into frames, sends replies whole and in order.

One request at a time: while a frame is being answered, later frames wait in the buffer, and when the
buffer is full the socket is not read. So a slow reader costs the memory of one reply. Small replies to frames
that arrived together are sent together, at the end of the turn: waking the peer costs more than answering.
There is no transport of asyncio: file ranges are sent with sendfile, and every call between the loop and a
frame costs time for every request.

Invariants: a frame (and every view of it) is valid only until its reply is given; the buffer is moved
only while nobody holds a frame. Owned by the event loop; not for other threads."""

import asyncio
import math
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from mmap import mmap
from time import monotonic
from typing import Any, Protocol

from barnabas.net.chunks import BYTES_TYPES, Bytes, Chunk, FileRange, coalesce, release_ranges
from barnabas.net.turn import Turn, UnlimitedTurn

# A new connection has a small buffer. When it is full for the first time, it gets one of the usual size.
FIRST_BUFFER_BYTES = 4 * 1024
BUFFER_BYTES = 128 * 1024
# A buffer for a larger frame doubles up to this size. Beyond it the whole buffer is mapped: the system gives
# it memory as the bytes arrive, and nothing has to be copied.
DOUBLED_BYTES_MAX = 4 * 1024 * 1024
# A buffer for one large frame is this much larger: a full buffer is not read, and that the peer has gone is
# noticed by reading.
SPARE_BYTES = 64
# One turn of the loop sends at most this much to one peer, so that a large fetch delays nobody.
TURN_BYTES_MAX = 8 * 1024 * 1024
# At most this many replies, each of at most this many bytes, are collected for one send.
HELD_REPLIES_MAX = 64
HELD_BYTES_MAX = 1024
# Request key and version, correlation id: a shorter frame cannot be a request.
FRAME_BYTES_MIN = 8

_UNLIMITED = UnlimitedTurn()
_SIZE = struct.Struct(">i")
_KEY = struct.Struct(">h")
# What a TLS client sends first: a handshake record of any version.
_TLS_GREETING = b"\x16\x03"


class Socket(Protocol):
    """What a connection needs of its socket: a plain one, or TLS (tls_socket.py)."""

    def fileno(self) -> int: ...
    def recv_into(self, view: memoryview, /) -> int: ...
    def send(self, data: Bytes, flags: int = 0, /) -> int: ...
    def close(self) -> None: ...


class ConnectionOwner(Protocol):
    def opened(self, connection: "Connection") -> None: ...

    @property
    def keys_answered_first(self) -> frozenset[int]:
        """The API keys of the frames that `answer_first` is tried for."""
        ...

    def answer_first(self, connection: "Connection", arrived: memoryview) -> tuple[int, Bytes]:
        """Answer the frames at the beginning, with their sizes in front, as far as that can be done on the
        spot: how many bytes they are and their replies. If some replies have to come later, `defer` has been
        called."""
        ...

    def frame(self, connection: "Connection", frame: memoryview) -> None:
        """Answer with connection.reply(), now or later, or close the connection."""
        ...

    def refused(self, connection: "Connection", reason: str) -> None:
        """The peer broke the framing; the connection is being closed."""
        ...

    def closed(self, connection: "Connection") -> None: ...


class Connection:
    def __init__(self, owner: ConnectionOwner, loop: asyncio.AbstractEventLoop, frame_bytes_max: int) -> None:
        self._owner = owner
        self._loop = loop
        self._frame_bytes_min = FRAME_BYTES_MIN
        self.frame_bytes_max = frame_bytes_max
        self._turn: Turn = getattr(loop, "turn", _UNLIMITED)
        self._buffer: bytearray | mmap = bytearray(FIRST_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = 0
        self._in_hand = False
        self._taking = False
        self._deferring = False
        # While it is muted, the connection acts as if a frame were in hand.
        self.is_muted = False
        self._unmuting: asyncio.TimerHandle | None = None
        self._paused = False
        self._output: deque[Chunk] = deque()
        self._held: list[Bytes] = []
        self._slice_sent = 0
        self._writer_armed = False
        self.is_closed = False
        # For the owner: what answers the most common requests of this connection, and who the peer is.
        self.short_way: Any = None
        self.session: Any = None
        # Called if the peer goes away before the frame in hand is answered; forgotten with the reply.
        self.when_abandoned: Callable[[], object] | None = None
        self.last_active = loop.time()
        self.peer_host = ""
        self.peer_port = 0

    def begin(self, plain: socket.socket) -> None:
        """Serve the peer at the other end of this socket, which belongs to the connection from now on."""
        self._socket: Socket = plain
        try:
            self.peer_host, self.peer_port = plain.getpeername()[:2]
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            # It has gone already.
            self.is_closed = True
            plain.close()
            return
        self._loop.add_reader(plain.fileno(), self._readable)
        self._owner.opened(self)

    # ---- what the loop calls

    def _readable(self) -> None:
        """Read what has arrived: bytes, or the end of the stream.

        Reading is paused while the buffer is full, so there is room here."""
        try:
            count = self._socket.recv_into(self._view[self._end :])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            count = 0
        if count == 0:
            self.close()
            return
        self._end += count
        if not (self._in_hand or self._output):
            # Not otherwise: a peer that sends more but does not read its reply counts as idle.
            self.last_active = self._loop.time()
            self._take_frames()
        if self._end == len(self._buffer) and self.is_busy and not self._paused and not self.is_closed:
            self._paused = True
            self._loop.remove_reader(self._socket.fileno())

    # ---- what the owner calls

    def reply(self, chunks: Sequence[Chunk] | None) -> None:
        """Answer the frame in hand (None: it has no answer) and go on to the next one."""
        if self.is_closed:
            release_ranges(chunks or ())
            return
        self.when_abandoned = None
        self._in_hand = self.is_muted
        if self._taking and (chunks is None or self._hold(chunks)):
            return
        self._release_held()
        if chunks is not None:
            try:
                self._output.extend(coalesce(chunks))
            except OSError:
                # The file cannot be read any more, and the reply cannot become shorter: its size is fixed.
                release_ranges(chunks)
                self.close()
                return
        self._pump()

    def defer(self, when_abandoned: Callable[[], object]) -> None:
        """Some replies of `answer_first` come later, with `reply_deferred`. Until the last of them only
        `answer_first` is called, and what it answers meanwhile is deferred too."""
        self._deferring = True
        self.when_abandoned = when_abandoned

    def reply_deferred(self, replies: Bytes, *, is_last: bool) -> None:
        """Send the next deferred replies; after the last one, go on to the next frame."""
        if self.is_closed:
            return
        if is_last:
            self._deferring = False
            self.when_abandoned = None
        if self._taking:
            self._held.append(replies)
            return
        self._output.append(replies)
        if self._send_output() and is_last and (self._end > self._start or self._paused):
            # In a later turn: this one belongs to somebody else's request.
            self._loop.call_soon(self._go_on)

    def hand_over(self, owner: ConnectionOwner) -> None:
        """Another owner gets the next frames, and is told when the connection is closed."""
        self._owner = owner

    def limit_frames(self, low: int, high: int) -> None:
        """How many bytes the next frames may have."""
        self._frame_bytes_min, self.frame_bytes_max = low, high

    def mute_until(self, moment: float) -> None:
        """Answer no further frame before this time of the loop, or before `unmute`; what arrives waits. To be
        called while no frame is in hand, or right before its reply, which is sent as usual."""
        if self.is_closed:
            return
        if self._unmuting is not None:
            self._unmuting.cancel()
        self.is_muted = self._in_hand = True
        self._unmuting = None if moment == math.inf else self._loop.call_at(moment, self.unmute)

    def unmute(self) -> None:
        if self.is_closed or not self.is_muted:
            return
        if self._unmuting is not None:
            self._unmuting.cancel()
            self._unmuting = None
        self.is_muted = False
        self._take_more()

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        if self._unmuting is not None:
            self._unmuting.cancel()
        self._disarm_writer()
        self._loop.remove_reader(self._socket.fileno())
        release_ranges(self._output)
        self._output.clear()
        self._held.clear()
        self._socket.close()
        # Code that still holds this connection should not hold its memory.
        self._buffer = bytearray()
        self._view = memoryview(self._buffer)
        # What answered its requests may hold the connection and partitions: the two would be freed only when
        # the garbage collector looks at old objects, which is rare.
        self.short_way = None
        abandoned, self.when_abandoned = self.when_abandoned, None
        if abandoned is not None:
            abandoned()
        self._owner.closed(self)

    def shrink(self) -> None:
        """Give back the memory of a large buffer that is not in use."""
        if not self.is_busy and self._start == self._end and len(self._buffer) > FIRST_BUFFER_BYTES:
            self._replace_buffer(FIRST_BUFFER_BYTES)

    @property
    def is_busy(self) -> bool:
        """Whether a frame is being answered, or an answer is not sent yet or not there yet."""
        return self._in_hand or self._deferring or bool(self._output)

    # ---- input: frames from the buffer

    def _take_frames(self) -> None:
        try:
            self._answer_frames()
        except Exception:
            # A defect. The loop logs it, and would call this method again and again.
            self.close()
            raise

    def _answer_frames(self) -> None:
        self._taking = True
        keys_answered_first = self._owner.keys_answered_first
        began = monotonic()
        latest = began + self._turn.seconds_left
        while not (self._in_hand or self._output or self.is_closed):
            if monotonic() > latest and self._end - self._start >= 4:
                # Act as if a frame were in hand: what arrives now waits behind what is in the buffer already.
                self._in_hand = True
                self._turn.wait(self._loop, self._take_more)
                break
            available = self._end - self._start
            if available < 4:
                self._make_room(4)
                break
            if available >= 6 and _KEY.unpack_from(self._buffer, self._start + 4)[0] in keys_answered_first:
                taken, replies = self._owner.answer_first(self, self._view[self._start : self._end])
                if taken:
                    self._start += taken
                    if replies:
                        self._held.append(replies)
                    continue
            frame = self._next_frame(available)
            if frame is None:
                break
            self._in_hand = True
            self._owner.frame(self, frame)
        self._taking = False
        self._turn.request_seconds += monotonic() - began
        if self._held:
            self._release_held()
            self._send_output()
        self._read_on()

    def _next_frame(self, available: int) -> memoryview | None:
        """The frame at the beginning, or None if it cannot be served now: it is not complete, or broken, or
        the replies of earlier frames come first."""
        size = _SIZE.unpack_from(self._buffer, self._start)[0]
        if not self._frame_bytes_min <= size <= self.frame_bytes_max:
            self._owner.refused(self, self._about_size(size))
            self.close()
            return None
        if available < 4 + size:
            self._make_room(4 + size)
            return None
        if self._deferring:
            return None
        begin = self._start + 4
        self._start = begin + size
        return self._view[begin : begin + size]

    def _about_size(self, size: int) -> str:
        if bytes(self._view[self._start : self._start + 2]) == _TLS_GREETING:
            return "it speaks TLS, but this listener does not: connect to a listener with SSL or SASL_SSL"
        return f"a frame of {size} bytes; {self._frame_bytes_min} to {self.frame_bytes_max} are allowed"

    def _read_on(self) -> None:
        """Read from the socket again if there is room now."""
        is_free = not (self._in_hand or self._output or self.is_closed)
        if self._paused and is_free and self._end < len(self._buffer):
            self._paused = False
            self._loop.add_reader(self._socket.fileno(), self._readable)

    def _take_more(self) -> None:
        """The turn that was waited for has come."""
        self._in_hand = False
        self._go_on()

    def _go_on(self) -> None:
        if not (self._in_hand or self._output or self.is_closed or self._taking):
            self._take_frames()

    def _make_room(self, needed: int) -> None:
        """Make room after `_end` for the rest of a frame of `needed` bytes that begins at `_start`.

        A buffer that is full of bytes that have arrived grows: an announced size costs no memory."""
        capacity = len(self._buffer)
        pending = self._end - self._start
        if self._end == capacity < BUFFER_BYTES:
            self._replace_buffer(BUFFER_BYTES)
        elif pending == 0:
            self._start = self._end = 0
        elif needed <= capacity:
            if self._start + needed > capacity:
                self._view[:pending] = self._view[self._start : self._end]
                self._start, self._end = 0, pending
        elif self._end == capacity:
            whole = needed + SPARE_BYTES
            self._replace_buffer(whole if capacity >= DOUBLED_BYTES_MAX else min(whole, 2 * capacity))

    def _replace_buffer(self, capacity: int) -> None:
        pending = self._end - self._start
        size = max(capacity, pending + 4)
        buffer = bytearray(size) if size <= 2 * DOUBLED_BYTES_MAX else mmap(-1, size)
        buffer[:pending] = self._view[self._start : self._end]
        self._buffer, self._view = buffer, memoryview(buffer)
        self._start, self._end = 0, pending

    # ---- output: replies to the socket

    def _hold(self, chunks: Sequence[Chunk]) -> bool:
        """Keep a small reply for the end of the turn; False if it has to be sent now."""
        chunk = chunks[0]
        if len(chunks) > 1 or not isinstance(chunk, BYTES_TYPES):
            return False
        if len(chunk) > HELD_BYTES_MAX or len(self._held) >= HELD_REPLIES_MAX:
            return False
        self._held.append(chunk)
        return True

    def _release_held(self) -> None:
        if self._held:
            self._output.append(self._held[0] if len(self._held) == 1 else b"".join(self._held))
            self._held.clear()

    def _pump(self) -> None:
        """Send all output; when everything is sent, go on to the next frame."""
        if self._send_output() and not self._taking and not self._in_hand:
            self._take_frames()

    def _send_output(self) -> bool:
        """Send until all is sent (True) or the socket is full (False); then the loop calls `_pump` later."""
        budget = TURN_BYTES_MAX
        try:
            while self._output and not self.is_closed:
                chunk = self._output[0]
                if isinstance(chunk, BYTES_TYPES):
                    if budget <= 0:
                        # A peer that reads as fast as we send does not keep the others waiting.
                        self._arm_writer()
                        return False
                    budget -= self._send_bytes(chunk)
                elif not self._send_range(chunk):
                    self._arm_writer()
                    return False
        except BlockingIOError:
            self._arm_writer()
            return False
        except OSError:
            # The peer is gone. The owner is called by `close`.
            self.close()
        if self.is_closed:
            return False
        self.last_active = self._loop.time()
        self._disarm_writer()
        return True

    def _send_bytes(self, chunk: Bytes) -> int:
        """Send as much as the socket takes; the number of bytes."""
        sent = self._socket.send(chunk, socket.MSG_MORE if len(self._output) > 1 else 0)
        if sent == len(chunk):
            self._output.popleft()
        else:
            self._output[0] = memoryview(chunk)[sent:]
        return sent

    def _send_range(self, chunk: FileRange) -> bool:
        """Send a file range; False when this connection has sent its share of this turn."""
        budget = TURN_BYTES_MAX
        while self._slice_sent < chunk.size:
            if budget <= 0:
                return False
            sent = os.sendfile(
                self._socket.fileno(),
                chunk.file.fileno(),
                chunk.position + self._slice_sent,
                min(chunk.size - self._slice_sent, budget),
            )
            if sent == 0:
                # The file is shorter than when the reply was made: the frame cannot be completed.
                raise OSError("the file was truncated while it was being sent")
            self._slice_sent += sent
            budget -= sent
            self.last_active = self._loop.time()
        self._slice_sent = 0
        self._output.popleft()
        chunk.release()
        return True

    def _arm_writer(self) -> None:
        if not self._writer_armed and not self.is_closed:
            self._writer_armed = True
            self._loop.add_writer(self._socket.fileno(), self._pump)

    def _disarm_writer(self) -> None:
        if self._writer_armed:
            self._writer_armed = False
            self._loop.remove_writer(self._socket.fileno())
