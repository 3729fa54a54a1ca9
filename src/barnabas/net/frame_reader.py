"""Splits the bytes from a broker into frames, each in its own memory, so that readers may keep slices.

A frame that is complete in the inbox is copied from it. The rest of a larger frame is received directly into
its own buffer. A buffer grows with the bytes that have arrived: a large announced size costs no memory."""

import asyncio
import struct

from barnabas.kernels.shared import uncleared

INBOX_BYTES = 64 * 1024
# A frame up to this size gets its whole buffer at once; the buffer of a larger one is doubled when full.
FIRST_BYTES_MAX = 16 * 1024 * 1024
# The size of the correlation id.
FRAME_BYTES_MIN = 4

_SIZE = struct.Struct(">i")


class FrameReader(asyncio.BufferedProtocol):
    """Calls `frame_received` for each frame, and `framing_broken` if a size is invalid."""

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
        """A frame without its size field. The receiver owns the memory."""

    def framing_broken(self, reason: str) -> None:
        """Nothing more can be read."""

    def release_buffers(self) -> None:
        """Nothing more is read. Code that still holds this reader should not hold its memory."""
        self._is_broken = True
        self._inbox = bytearray(FRAME_BYTES_MIN)
        self._inbox_view = memoryview(self._inbox)
        self._start = self._end = 0
        self._frame = None

    @property
    def inbox(self) -> bytearray:
        """For code that reads into it itself while the reader is between frames; see `inbox_filled`."""
        return self._inbox

    @property
    def is_between_frames(self) -> bool:
        """Whether no part of a frame has arrived."""
        return self._frame is None and self._start == self._end

    def inbox_filled(self, start: int, end: int) -> bool:
        """Take note of bytes that were read into the inbox, between frames. Returns whether there are any:
        then `buffer_updated(0)` takes the frames among them."""
        self._start, self._end = (start, end) if start < end else (0, 0)
        return start < end

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
                self.framing_broken(f"the broker sent a frame with the invalid size {size}")
                return
            begin = self._start + 4
            if self._end - begin < size:
                self._begin_frame(size, begin)
                return
            self._start = begin + size
            self.frame_received(bytes(self._inbox_view[begin : self._start]))
        self._compact()

    def _begin_frame(self, size: int, begin: int) -> None:
        """Copy the first bytes of a frame from the inbox to its own buffer; the rest is received there."""
        frame = uncleared(min(size, FIRST_BYTES_MAX))
        filled = self._end - begin
        frame[:filled] = self._inbox_view[begin : self._end]
        self._frame, self._frame_size, self._frame_filled = frame, size, filled
        self._start = self._end = 0

    def _grow_frame(self, frame: bytearray) -> None:
        # Allocate a new buffer: the loop still holds a view of the old one, which cannot be resized.
        larger = uncleared(min(self._frame_size, 2 * len(frame)))
        larger[: len(frame)] = frame
        self._frame = larger

    def _compact(self) -> None:
        """Move the remaining bytes, at most three of a size field, to the start of the inbox."""
        left = self._end - self._start
        self._inbox_view[:left] = self._inbox_view[self._start : self._end]
        self._start, self._end = 0, left
