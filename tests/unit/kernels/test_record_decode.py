"""Decoding records, compiled and interpreted: the same results, also for invalid bytes."""

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted

from barnabas.kernels import record_decode as compiled
from barnabas.kernels.record_append import encode_records
from barnabas.kernels.shared import OpenBatch

plain = interpreted(compiled)
BOTH = pytest.mark.parametrize("kernel", [compiled, plain], ids=["compiled", "interpreted"])

optional_bytes = st.none() | st.binary(max_size=20)
headers = st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3)
rows = st.lists(
    st.tuples(st.integers(-1, 1 << 42), optional_bytes, optional_bytes, headers), min_size=1, max_size=8
)
FIELDS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
    "leader_epoch",
    "serialized_key_size",
    "serialized_value_size",
)


def cursor(
    kernel: Any, data: bytes, count: int, *, header: Any = (100, 5, None, 7), first_offset: int = 0
) -> Any:
    """`header`: base offset, base timestamp, append time or None, leader epoch."""
    reading = kernel.BatchCursor("topic", 3)
    reading.open(OpenBatch(data, 0, len(data), count, *header), first_offset)
    return reading


def fields(record: Any) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in FIELDS)


def taken(kernel: Any, data: bytes, count: int, step: int, first: int = 0) -> Any:
    """The records, read in calls of at most `step`, and the final state or the error."""
    out: list[Any] = []
    try:
        reading = cursor(kernel, data, count, first_offset=first)
        for _ in range(count + 1):
            reading.take(out, step)
    except ValueError as error:
        return [fields(record) for record in out], str(error)
    return [fields(record) for record in out], reading.left, reading.next_offset


@BOTH
@given(rows=rows, step=st.integers(1, 9), skipped=st.integers(0, 9))
def test_records_are_read_as_they_were_written(kernel: Any, rows: Any, step: int, skipped: int) -> None:
    data = bytes(encode_records(rows, 5))
    records, left, next_offset = taken(kernel, data, len(rows), step, first=100 + skipped)
    expected = [
        ("topic", 3, 100 + index, timestamp, 0, key, value, tuple(headers), 7, size_of(key), size_of(value))
        for index, (timestamp, key, value, headers) in enumerate(rows)
    ][skipped:]
    assert records == expected
    assert left == 0
    assert next_offset == 100 + max(len(rows), skipped)


def size_of(data: bytes | None) -> int:
    return -1 if data is None else len(data)


@given(data=st.binary(max_size=60), count=st.integers(0, 5), step=st.integers(1, 3))
def test_both_forms_agree_on_any_bytes(data: bytes, count: int, step: int) -> None:
    assert taken(compiled, data, count, step) == taken(plain, data, count, step)


@given(rows=rows, position=st.integers(0, 200), byte=st.integers(0, 255))
def test_both_forms_agree_on_damaged_records(rows: Any, position: int, byte: int) -> None:
    data = bytearray(encode_records(rows, 5))
    data[position % len(data)] = byte
    assert taken(compiled, bytes(data), len(rows), 3) == taken(plain, bytes(data), len(rows), 3)


@BOTH
def test_append_time_is_the_time_of_every_record(kernel: Any) -> None:
    data = bytes(encode_records([(5, b"k", b"v", ()), (9, None, None, ())], 5))
    out: list[Any] = []
    cursor(kernel, data, 2, header=(0, 5, 77, -1)).take(out, 2)
    assert [(record.timestamp, record.timestamp_type) for record in out] == [(77, 1), (77, 1)]


@BOTH
def test_a_deserializer_that_fails_leaves_the_cursor_before_the_record(kernel: Any) -> None:
    data = bytes(encode_records([(5, b"1", b"v", ()), (5, b"x", b"v", ()), (5, b"3", b"v", ())], 5))
    reading = kernel.BatchCursor("t", 0, lambda _, key: int(key))
    reading.open(OpenBatch(data, 0, len(data), 3, 0, 5), 0)
    out: list[Any] = []
    for _ in range(2):
        with pytest.raises(ValueError, match="invalid literal"):
            reading.take(out, 3)
    assert [record.key for record in out] == [1]
    assert (reading.next_offset, reading.left) == (1, 2)


@BOTH
def test_timestamps_and_offsets_out_of_range_are_refused(kernel: Any) -> None:
    data = bytes(encode_records([(6, b"", b"", ())], 5))
    with pytest.raises(ValueError, match="out of range"):
        cursor(kernel, data, 1, header=(0, (1 << 63) - 1, None, -1)).take([], 1)
    data = bytes(encode_records([(6, b"", b"", ())], 5, [5]))
    with pytest.raises(ValueError, match="out of range"):
        cursor(kernel, data, 1, header=((1 << 63) - 1, 0, None, -1)).take([], 1)


@BOTH
def test_a_record_can_be_constructed(kernel: Any) -> None:
    record = kernel.ConsumerRecord("t", 1, 2, b"k", headers=[("a", None)], timestamp=5)
    assert (record.topic, record.headers, record.timestamp, record.value) == ("t", (("a", None),), 5, None)
    assert "offset=2" in repr(record)
    with pytest.raises(TypeError, match="colour"):
        kernel.ConsumerRecord("t", 1, 2, colour="red")


def test_records_can_be_sent_to_other_processes() -> None:
    record = compiled.ConsumerRecord("topic", 3, 100, b"key", [1, 2], headers=[("a", None)], timestamp=5)
    assert fields(pickle.loads(pickle.dumps(record))) == fields(record)
