"""The driver sees a wrong answer."""

import struct

import pytest
from crc32c import crc32c
from tests.bench import frames
from tests.bench.connection import check_produced
from tests.bench.sessions import fetch_request, read_fetched


def produced(error: int, offset: int) -> memoryview:
    return memoryview(b"\0" * 10 + struct.pack(">hq", error, offset))


def test_an_answer_with_an_error_or_another_offset_is_refused() -> None:
    assert check_produced(produced(0, 145), 10, expected=145) == 145
    with pytest.raises(RuntimeError, match="error 6"):
        check_produced(produced(6, -1), 10)
    with pytest.raises(RuntimeError, match="offset 146, not at 145"):
        check_produced(produced(0, 146), 10, expected=145)


def fetched(*bases: int) -> tuple[memoryview, int]:
    """Batches of two records at these offsets, as they would be fetched."""
    batch = bytearray(frames.value_batch(2))
    records = bytearray()
    for base in bases:
        struct.pack_into(">q", batch, 0, base)
        records += batch
    return memoryview(records), len(batch)


def test_a_slice_ends_after_its_last_whole_batch() -> None:
    records, size = fetched(10, 12, 14)
    assert frames.offset_after(records, size, 2, fetch_offset=10) == 16
    assert frames.offset_after(records[:-1], size, 2, fetch_offset=10) == 14


@pytest.mark.parametrize("bases", [(11, 12), (10, 13)])
def test_a_slice_with_unexpected_offsets_is_refused(bases: tuple[int, ...]) -> None:
    records, size = fetched(*bases)
    with pytest.raises(RuntimeError, match="a fetch at offset 10"):
        frames.offset_after(records, size, 2, fetch_offset=10)


def test_a_slice_without_a_whole_batch_is_refused() -> None:
    records, size = fetched(10)
    with pytest.raises(RuntimeError, match="less than a batch"):
        frames.offset_after(records[:-1], size, 2, fetch_offset=10)


def test_a_batch_that_was_given_another_time_is_still_whole() -> None:
    batch = bytearray(frames.value_batch(3))
    frames.stamp(batch, 1_700_000_000_123)
    assert struct.unpack_from(">qq", batch, 27) == (1_700_000_000_123, 1_700_000_000_123)
    (checksum,) = struct.unpack_from(">I", batch, 17)
    assert checksum == crc32c(batch[21:])
    assert batch[43:] == frames.value_batch(3)[43:]


def test_an_answer_of_several_partitions_is_read() -> None:
    record = struct.pack(">q", 7) + b"rest"
    one = (
        struct.pack(">ihqqq", 3, 0, 8, 8, 0)
        + b"\0"
        + struct.pack(">i", -1)
        + frames.uvarint(13)
        + record
        + b"\0"
    )
    other = struct.pack(">ihqqq", 4, 0, 0, 0, 0) + b"\1" + struct.pack(">i", -1) + b"\1" + b"\0"
    head = struct.pack(">ii", 0, 1) + b"\0" + struct.pack(">ihi", 0, 0, 99)
    answer = head + b"\2" + frames.compact_string("topic") + b"\3" + one + other + b"\0\0"
    assert read_fetched(memoryview(answer)) == (99, {3: 7, 4: -1})


def test_an_incremental_fetch_names_only_what_moved() -> None:
    everything = fetch_request("topic", dict.fromkeys(range(100), 0), 0, 0)
    nothing = fetch_request("topic", {}, 99, 1)
    assert len(nothing) < 60 < len(everything)
