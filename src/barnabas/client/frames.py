"""Cuts what a broker sends into frames, each in memory of its own: its reader may keep slices of it.

A frame that is whole in the inbox is copied out of it; the rest of a larger one is received straight into
its own buffer. A buffer grows with what has really arrived: an announced size costs no memory."""

import asyncio
import struct

from barnabas.kernels.shared import uncleared

INBOX_BYTES = 64 * 1024
# A frame up to this size gets its whole buffer at once; a larger one doubles it as it fills.
FIRST_BYTES_MAX = 16 * 1024 * 1024
# The correlation id alone.
FRAME_BYTES_MIN = 4

_SIZE = struct.Struct(">i")


class FrameReader(asyncio.BufferedProtocol):
    """Subclasses get `frame_received` for each frame, and `framing_broken` when a size makes no sense."""

    def __init__(self) -> None:
        self._inbox = bytearray(INBOX_BYTES)
        self._inbox_view = memoryview(self._inbox)
        self._start = 0
        self._end = 0
        self._frame: bytearray | None = None
        self._frame_size = 0
        self._frame_filled = 0
        self._is_broken = False

    def frame_received(self, frame: bytes | bytearray) -> None:
        """A frame without its size; the memory is the receiver's."""

    def framing_broken(self, reason: str) -> None:
        """Nothing more can be read."""

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is not None:
            return memoryview(self._frame)[self._frame_filled :]
        return self._inbox_view[self._end :]

    def buffer_updated(self, count: int) -> None:
        if self._is_broken:
            return
        if self._frame is None:
            self._end += count
            self._take_frames()
            return
        self._frame_filled += count
        if self._frame_filled == self._frame_size:
            frame, self._frame = self._frame, None
            self.frame_received(frame)
        elif self._frame_filled == len(self._frame):
            self._grow_frame(self._frame)

    def _take_frames(self) -> None:
        while self._end - self._start >= 4:
            (size,) = _SIZE.unpack_from(self._inbox, self._start)
            if size < FRAME_BYTES_MIN:
                self._is_broken = True
                self.framing_broken(f"it sent a frame of {size} bytes")
                return
            begin = self._start + 4
            if self._end - begin < size:
                self._begin_frame(size, begin)
                return
            self._start = begin + size
            self.frame_received(bytes(self._inbox_view[begin : self._start]))
        self._compact()

    def _begin_frame(self, size: int, begin: int) -> None:
        """The first bytes of a frame are in the inbox; the others go to its own buffer."""
        frame = uncleared(min(size, FIRST_BYTES_MAX))
        filled = self._end - begin
        frame[:filled] = self._inbox_view[begin : self._end]
        self._frame, self._frame_size, self._frame_filled = frame, size, filled
        self._start = self._end = 0

    def _grow_frame(self, frame: bytearray) -> None:
        # A new one: the loop still holds a view of the old one.
        larger = uncleared(min(self._frame_size, 2 * len(frame)))
        larger[: len(frame)] = frame
        self._frame = larger

    def _compact(self) -> None:
        """At most three bytes of a size are left; there is room for the rest."""
        left = self._end - self._start
        self._inbox_view[:left] = self._inbox_view[self._start : self._end]
        self._start, self._end = 0, left
