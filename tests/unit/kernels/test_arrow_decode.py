"""Decoding records into Arrow's buffers: both forms give the same results, also for invalid bytes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted

from barnabas.kernels import arrow_decode as compiled
from barnabas.kernels.record_append import encode_records
from barnabas.kernels.shared import OpenBatch

EVERYTHING = frozenset({"key", "value", "headers", "offset", "timestamp"})
NO_BOUNDS = (0, (1 << 63) - 2)
NO_LIMITS = (1 << 40, 1 << 40)


plain = interpreted(compiled)
BOTH = pytest.mark.parametrize("kernel", [compiled, plain], ids=["compiled", "interpreted"])

optional_bytes = st.none() | st.binary(max_size=20)
headers = st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3)
rows = st.lists(
    st.tuples(st.integers(-1, 1 << 42), optional_bytes, optional_bytes, headers), min_size=1, max_size=30
)


def cells(column: Any) -> list[bytes | None]:
    """What Arrow would read from the column's buffers."""
    assert len(column.ends) == column.rows + 1
    assert len(column.bits) == (column.rows + 7) // 8
    values = []
    for row in range(column.rows):
        is_valid = column.bits[row >> 3] >> (row & 7) & 1
        data = bytes(column.data[column.ends[row] : column.ends[row + 1]])
        assert is_valid or not data
        values.append(data if is_valid else None)
    assert column.nulls == values.count(None)
    assert len(column.data) == column.ends[-1]
    return values


def contents(columns: Any) -> dict[str, Any]:
    columns.trim()
    return {
        "count": columns.count,
        "size": columns.size,
        "place": (columns.position, columns.left, columns.next_offset),
        "keys": None if columns.keys is None else cells(columns.keys),
        "values": None if columns.values is None else cells(columns.values),
        "offsets": list(columns.offsets or ()),
        "timestamps": list(columns.timestamps or ()),
        "header_ends": list(columns.header_ends or ()),
        "header_names": cells(columns.header_names),
        "header_values": cells(columns.header_values),
    }


def append(columns: Any, data: bytes, count: int, **options: Any) -> Any:
    base_offset, base_timestamp, append_time = options.get("header", (100, 5, None))
    first_offset, last_offset = options.get("bounds", NO_BOUNDS)
    rows_max, bytes_max = options.get("limits", NO_LIMITS)
    position = options.get("position", 0)
    try:
        batch = OpenBatch(
            memoryview(data), position, len(data), count, base_offset, base_timestamp, append_time
        )
        return columns.append_batch(batch, first_offset, last_offset, rows_max, bytes_max)
    except ValueError as error:
        return str(error)


def outcome(kernel: Any, data: bytes, count: int, **options: Any) -> Any:
    columns = kernel.ColumnBuffers(EVERYTHING)
    return append(columns, data, count, **options), contents(columns)


@BOTH
@given(rows=rows)
def test_columns_hold_what_was_written(kernel: Any, rows: Any) -> None:
    columns = kernel.ColumnBuffers(EVERYTHING)
    data = bytes(encode_records(rows, 5))
    for base in (100, 1000):
        assert append(columns, data, len(rows), header=(base, 5, None)) == base + len(rows)
    decoded = contents(columns)
    twice = rows + rows
    pairs = [pair for row in twice for pair in row[3]]
    assert decoded["count"] == len(twice)
    assert decoded["keys"] == [row[1] for row in twice]
    assert decoded["values"] == [row[2] for row in twice]
    assert decoded["timestamps"] == [row[0] for row in twice]
    assert decoded["offsets"] == [*range(100, 100 + len(rows)), *range(1000, 1000 + len(rows))]
    assert decoded["header_names"] == [name.encode() for name, _ in pairs]
    assert decoded["header_values"] == [value for _, value in pairs]
    counts = [len(row[3]) for row in twice]
    assert decoded["header_ends"] == [sum(counts[:index]) for index in range(len(counts) + 1)]
    sizes = [len(part or b"") for row in twice for part in row[1:3]]
    assert decoded["size"] == sum(sizes) + sum(
        len(name.encode()) + len(value or b"") + 1 for name, value in pairs
    )


@BOTH
def test_many_rows_and_many_headers_are_filled_in_steps(kernel: Any) -> None:
    rows = [(5, None, b"%d" % index, [("h", None)] * (index % 3)) for index in range(1500)]
    _, rows_read = outcome(kernel, bytes(encode_records(rows, 5)), 1500)
    assert rows_read["values"] == [row[2] for row in rows]
    assert rows_read["header_names"] == [b"h"] * 1500
    assert rows_read["header_ends"][-3:] == [1497, 1498, 1500]


@given(data=st.binary(max_size=60), count=st.integers(-1, 5))
def test_both_forms_agree_on_any_bytes(data: bytes, count: int) -> None:
    assert outcome(compiled, data, count) == outcome(plain, data, count)


@given(
    rows=rows,
    edits=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 255)), max_size=3),
    bounds=st.tuples(st.integers(95, 135), st.integers(95, 135)),
    limits=st.tuples(st.integers(0, 40), st.integers(0, 400)),
    cut=st.integers(0, 3),
)
def test_both_forms_agree_on_damaged_records(
    rows: Any, edits: Any, bounds: Any, limits: Any, cut: int
) -> None:
    data = bytearray(encode_records(rows, 5))
    for place, byte in edits:
        data[place % len(data)] = byte
    damaged = bytes(data[: len(data) - cut])
    options = {"bounds": bounds, "limits": limits}
    assert outcome(compiled, damaged, len(rows), **options) == outcome(plain, damaged, len(rows), **options)


@BOTH
@given(rows=rows, step=st.integers(1, 8), size=st.integers(0, 60))
def test_rows_read_in_several_steps_are_all_the_rows(kernel: Any, rows: Any, step: int, size: int) -> None:
    data = bytes(encode_records(rows, 5))
    position, left, offset, offsets = 0, len(rows), 102, []
    while left:
        columns = kernel.ColumnBuffers(EVERYTHING)
        offset = append(columns, data, left, position=position, bounds=(offset, 10**9), limits=(step, size))
        position, left = columns.position, columns.left
        columns.trim()
        assert columns.count <= step
        assert columns.size <= size or columns.count == 1
        offsets += list(columns.offsets)
    assert offsets == list(range(102, 100 + len(rows)))


@BOTH
def test_offsets_beyond_the_bounds_are_not_read_and_gaps_are_skipped(kernel: Any) -> None:
    data = bytes(encode_records([(5, b"", b"", ())] * 3, 5, [1, 4, 9]))
    result, rows_read = outcome(kernel, data, 3, bounds=(0, 107))
    assert (result, rows_read["offsets"]) == (108, [101, 104])
    result, rows_read = outcome(kernel, data, 3, bounds=(0, 50))
    assert (result, rows_read["offsets"]) == (51, [])


@BOTH
def test_only_requested_columns_are_filled_and_counted(kernel: Any) -> None:
    columns = kernel.ColumnBuffers(frozenset({"value", "partition"}))
    append(columns, bytes(encode_records([(5, b"key", b"ab", [("h", b"x")])], 5)), 1)
    decoded = contents(columns)
    assert (decoded["values"], decoded["size"], decoded["count"]) == ([b"ab"], 2, 1)
    assert columns.keys is columns.offsets is columns.timestamps is columns.header_ends is None
    assert decoded["header_names"] == []


@BOTH
def test_append_time_is_the_time_of_every_record(kernel: Any) -> None:
    data = bytes(encode_records([(5, b"k", b"v", ()), (9, None, None, ())], 5))
    assert outcome(kernel, data, 2, header=(0, 5, 77))[1]["timestamps"] == [77, 77]


@BOTH
@pytest.mark.parametrize(
    ("data", "count", "header", "complaint"),
    [
        (b"\xff\xff\xff\xff\xff\x01", 1, (7, 0, None), "offset 7: the length of the record"),
        (b"\x7e\x00\x00\x00\x01\x01\x00", 1, (7, 0, None), "offset 7: the length of the record"),
        (b"\x0c\x00\x00\x00\x7e\x01\x00", 1, (7, 0, None), "offset 7: the length of the key"),
        (b"\x0c\x00\x00\x00\x01\x7e\x00", 1, (7, 0, None), "offset 7: the length of the value"),
        (b"\x0c\x00\x00\x00\x01\x01\x7e", 1, (7, 0, None), "offset 7: the number of headers"),
        (
            b"\x0e\x00\x00\x00\x01\x01\x00\x00",
            1,
            (7, 0, None),
            "offset 7: bytes are left over at the end of the record",
        ),
        (b"\x0c\x00\x00\x00\x01\x01\x00\x00", 1, (7, 0, None), "offset 8: bytes are left over after"),
        (b"\x0c\x00\x02\x00\x01\x01\x00", 1, (7, (1 << 63) - 1, None), "is out of range"),
        (b"\x0c\x00\x00\x02\x01\x01\x00", 1, ((1 << 63) - 1, 0, None), "is out of range"),
        (b"", 1 << 62, (7, 0, None), "offset 7: the length of the record"),
        (b"", -1, (7, 0, None), "out of bounds"),
        (b"", 1, (-1, 0, None), "out of bounds"),
    ],
)
def test_malformed_records_are_refused_with_their_offset(
    kernel: Any, data: bytes, count: int, header: Any, complaint: str
) -> None:
    result, _ = outcome(kernel, data, count, header=header)
    assert complaint in str(result)


@BOTH
def test_rows_before_a_malformed_record_are_kept(kernel: Any) -> None:
    data = bytes(encode_records([(5, b"k", b"v", ())] * 3, 5))
    result, rows_read = outcome(kernel, data[:-1], 3)
    assert "offset 102" in str(result)
    assert rows_read["values"] == [b"v", b"v"]
    assert rows_read["place"][1:] == (1, 102)
