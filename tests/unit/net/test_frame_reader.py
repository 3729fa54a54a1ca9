"""Frames are read correctly, whatever pieces the bytes arrive in."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.net import frame_reader as frames
from barnabas.net.frame_reader import FrameReader


class Collector(FrameReader):
    def __init__(self) -> None:
        super().__init__()
        self.frames: list[bytes] = []
        self.broken: list[str] = []

    def frame_received(self, frame: bytes | bytearray) -> None:
        self.frames.append(bytes(frame))

    def framing_broken(self, reason: str) -> None:
        self.broken.append(reason)


def feed(reader: FrameReader, data: bytes, piece: int) -> None:
    while data:
        # Keep the buffer during the update, as the event loop does.
        buffer = reader.get_buffer(-1)
        count = min(len(buffer), piece, len(data))
        assert count, "the reader's buffer is full"
        buffer[:count] = data[:count]
        data = data[count:]
        reader.buffer_updated(count)


@given(bodies=st.lists(st.binary(min_size=4, max_size=200)), piece=st.integers(1, 300))
def test_frames_can_arrive_in_any_pieces(bodies: list[bytes], piece: int) -> None:
    reader = Collector()
    feed(reader, b"".join(struct.pack(">i", len(body)) + body for body in bodies), piece)
    assert reader.frames == bodies


def test_the_buffer_grows_for_a_frame_larger_than_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "FIRST_BYTES_MAX", frames.INBOX_BYTES)
    body = bytes(range(256)) * 2000
    reader = Collector()
    feed(reader, (struct.pack(">i", len(body)) + body) * 2, 10_000)
    assert reader.frames == [body, body]


@pytest.mark.parametrize("size", [-1, 0, 3, -(2**31)])
def test_an_invalid_size_is_reported_once(size: int) -> None:
    reader = Collector()
    feed(reader, struct.pack(">i", size) * 3, 12)
    feed(reader, b"more", 4)
    assert len(reader.broken) == 1
    assert reader.frames == []


def test_a_reader_without_its_buffers_reads_nothing_more() -> None:
    """Also if they are released while one of several frames is handled."""

    class Closing(Collector):
        def frame_received(self, frame: bytes | bytearray) -> None:
            super().frame_received(frame)
            self.release_buffers()

    reader = Closing()
    feed(reader, (struct.pack(">i", 5) + b"frame") * 3, 1000)
    assert reader.frames == [b"frame"]
    assert 0 < len(reader.get_buffer(-1)) < 100
    feed(reader, b"more", 1)
    assert reader.frames == [b"frame"]
    assert reader.broken == []


def test_bytes_that_others_read_into_the_inbox_are_taken() -> None:
    reader = Collector()
    frames_of_two = b"".join(struct.pack(">i", len(body)) + body for body in (b"first", b"second"))
    reader.inbox[: len(frames_of_two)] = frames_of_two
    # The first one was read by those who filled the inbox.
    assert reader.inbox_filled(9, len(frames_of_two))
    assert not reader.is_between_frames
    reader.buffer_updated(0)
    assert reader.frames == [b"second"]
    assert reader.is_between_frames


def test_an_inbox_of_which_all_was_read_is_empty() -> None:
    reader = Collector()
    assert not reader.inbox_filled(20, 20)
    assert reader.is_between_frames
    feed(reader, struct.pack(">i", 5) + b"later", 3)
    assert reader.frames == [b"later"]


def test_a_part_of_a_frame_is_not_between_frames() -> None:
    reader = Collector()
    feed(reader, b"\0\0", 2)
    assert not reader.is_between_frames
    feed(reader, struct.pack(">i", frames.INBOX_BYTES * 2)[2:] + b"begin", 7)
    assert not reader.is_between_frames
