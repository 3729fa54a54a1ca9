"""Building batches, reading them, and their headers."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.records.stamping import stamp

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records import batch as batches
from barnabas.records.batch import HEADER_SIZE, crc_is_valid, iter_headers, read_header
from barnabas.records.builder import (
    ABORT_MARKER,
    COMMIT_MARKER,
    Marker,
    Record,
    TimedOffset,
    build_batch,
    control_batch,
    first_at_or_after,
    read_marker,
    read_records,
    rebuild_batch,
)

optional_bytes = st.none() | st.binary(max_size=50)
headers = st.lists(st.tuples(st.text(max_size=8), optional_bytes), max_size=3)
new_records = st.lists(
    st.tuples(st.integers(0, 1 << 42), optional_bytes, optional_bytes, headers), min_size=1, max_size=20
)
codecs = st.integers(0, 4)


@given(new_records, codecs, st.integers(0, 1 << 50))
def test_reading_gives_back_what_was_built(records, codec, base_offset):
    batch = build_batch(records, compression=codec, base_offset=base_offset)
    assert read_records(batch) == [
        Record(key, value, pairs, timestamp, base_offset + place)
        for place, (timestamp, key, value, pairs) in enumerate(records)
    ]
    assert crc_is_valid(batch, 0, len(batch))


def test_the_header_has_the_given_fields():
    batch = build_batch(
        [(50, b"k", b"v", ()), (90, b"k", b"v", ()), (70, b"k", b"v", ())],
        base_offset=1000,
        compression=4,
        producer_id=7,
        producer_epoch=3,
        base_sequence=11,
        transactional=True,
        leader_epoch=5,
    )
    header = read_header(batch)
    assert (header.base_offset, header.last_offset, header.next_offset) == (1000, 1002, 1003)
    assert (header.base_timestamp, header.max_timestamp, header.count) == (50, 90, 3)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (
        7,
        3,
        11,
        13,
    )
    assert (header.size, header.magic, header.leader_epoch, header.compression) == (len(batch), 2, 5, 4)
    assert header.has_producer_id
    assert header.is_transactional
    assert not (header.is_control or header.is_log_append_time or header.has_delete_horizon)


def test_sequences_wrap_to_zero():
    batch = build_batch(
        [(0, None, None, ())] * 3, producer_id=1, producer_epoch=0, base_sequence=(1 << 31) - 1
    )
    assert read_header(batch).last_sequence == 1
    assert read_header(build_batch([(0, None, None, ())])).last_sequence == -1


def test_log_append_time_is_the_time_of_every_record():
    batch = build_batch([(5, b"a", None, ()), (6, b"b", None, ())], log_append_time=99)
    assert read_header(batch).is_log_append_time
    assert [record.timestamp for record in read_records(batch)] == [99, 99]


def test_a_delete_horizon_does_not_change_the_timestamps():
    batch = build_batch([(500, b"a", None, ())], delete_horizon=900)
    header = read_header(batch)
    assert header.has_delete_horizon
    assert header.base_timestamp == 900
    assert read_records(batch)[0].timestamp == 500


def test_an_empty_batch_is_possible():
    batch = build_batch([])
    assert read_records(batch) == []
    assert read_header(batch).last_offset_delta == -1


@pytest.mark.parametrize("codec", [0, 2])
def test_rebuilding_keeps_offsets_range_and_producer(codec):
    batch = build_batch(
        [(place, b"%d" % place, b"v", [("h", None)]) for place in range(5)],
        base_offset=40,
        compression=codec,
        producer_id=9,
        producer_epoch=1,
        base_sequence=6,
    )
    header = read_header(batch)
    kept = [record for record in read_records(batch) if record.offset in (41, 43)]
    rebuilt = rebuild_batch(header, kept)
    new = read_header(rebuilt)
    assert read_records(rebuilt) == kept
    assert (new.base_offset, new.last_offset, new.count, new.max_timestamp) == (40, 44, 2, 3)
    assert (new.producer_id, new.base_sequence, new.last_sequence, new.compression) == (9, 6, 10, codec)
    empty = read_header(rebuild_batch(header, []))
    assert (empty.last_offset, empty.count, empty.last_sequence) == (44, 0, 10)


@pytest.mark.parametrize("kind", [ABORT_MARKER, COMMIT_MARKER])
def test_markers(kind):
    batch = control_batch(kind, 12, producer_id=5, producer_epoch=2, timestamp=77)
    header = read_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, -1)
    assert read_marker(batch) == Marker(kind, 12)
    assert read_records(batch)[0].key == struct.pack(">hh", 0, kind)


def test_control_batches_of_other_kinds_are_not_markers():
    other = build_batch([(0, struct.pack(">hh", 0, 2), b"", ())], control=True)
    assert read_marker(other) is None
    with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
        read_marker(build_batch([(0, b"\x00", b"", ())], control=True))


def test_stamping_leaves_the_crc_valid():
    batch = build_batch([(0, None, b"v", ())])
    stamp(batch, 0, 123456789012, 42)
    header = read_header(batch)
    assert (header.base_offset, header.leader_epoch) == (123456789012, 42)
    assert crc_is_valid(batch, 0, len(batch))


def test_the_crc_detects_any_changed_byte():
    batch = build_batch([(0, b"key", b"value", [("h", b"x")])])
    for place in range(17, len(batch)):
        batch[place] ^= 0x10
        assert not crc_is_valid(batch, 0, len(batch))
        batch[place] ^= 0x10
    assert not crc_is_valid(batch, 0, len(batch) + 1)
    assert not crc_is_valid(batch, 0, HEADER_SIZE - 1)


def test_iteration_stops_at_a_torn_batch_and_refuses_a_corrupt_one():
    first, second = (bytes(build_batch([(0, None, b"v", ())], base_offset=place)) for place in (0, 1))
    assert [(place, header.base_offset) for place, header in iter_headers(first + second)] == [
        (0, 0),
        (len(first), 1),
    ]
    assert [place for place, _ in iter_headers(first + second[:-1])] == [0]
    with pytest.raises(KafkaError) as caught:
        list(iter_headers(first + bytes(100)))
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_short_or_cut_off_batches_cannot_be_read():
    batch = bytes(build_batch([(0, None, b"v", ())]))
    for size in range(len(batch)):
        with pytest.raises(KafkaError) as caught:
            read_records(batch[:size])
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_records_that_do_not_fill_the_batch_cannot_be_read():
    batch = build_batch([(0, None, b"v", ())])
    batch[60] = 2
    with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
        read_records(batch)


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize(
    ("target", "expected"),
    [(0, (10, 100)), (100, (10, 100)), (101, (11, 300)), (300, (11, 300)), (301, None)],
)
def test_search_finds_the_first_record_at_or_after_a_time(codec, target, expected):
    records = [(100, None, b"a", ()), (300, None, b"b", ()), (200, None, b"c", ())]
    batch = build_batch(records, base_offset=10, compression=codec)
    assert first_at_or_after(batch, target) == (None if expected is None else TimedOffset(*expected))


def test_search_in_log_append_time_finds_the_first_record():
    batch = build_batch([(100, None, b"a", ()), (300, None, b"b", ())], base_offset=10, log_append_time=500)
    assert first_at_or_after(batch, 400) == TimedOffset(10, 500)
    assert first_at_or_after(batch, 501) is None


def test_search_in_malformed_records_is_refused():
    batch = build_batch([(100, None, b"a", ())])
    batch[HEADER_SIZE] = 0x7F
    with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
        first_at_or_after(batch, 100)


def test_last_sequence_without_a_sequence_stays_none():
    assert batches.last_sequence(-1, 5) == -1
