"""Tables as batches and back: all column types that Arrow has for bytes, slices, chunks, nulls."""

from typing import Any

import pyarrow as pa
import pytest

from barnabas.kernels.hashing import murmur2
from barnabas.records.arrow import RecordColumns, append_fetched, encode_batches
from barnabas.records.batch import read_header
from barnabas.records.tables import Encoding, encoded, record_batches


def read(batches: list[tuple[int, bytearray, int]]) -> list[dict[str, Any]]:
    """The rows, by partition."""
    rows: list[dict[str, Any]] = []
    for partition, batch, count in sorted(batches, key=lambda each: each[0]):
        columns = RecordColumns()
        append_fetched(columns, bytes(batch), first_offset=0)
        assert columns.count == count
        rows += columns.finish("t", partition).to_pylist()
    return rows


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())],
    ids=str,
)
def test_all_kinds_of_bytes_with_nulls_slices_and_chunks(kind: Any) -> None:
    keys = pa.chunked_array([pa.array(["a", None, "b"]), pa.array([], pa.string()), pa.array(["", "ä"])])
    values = pa.chunked_array([pa.array([None, "1"]), pa.array(["2", "3", None])])
    table = pa.table({"key": keys.cast(kind), "value": values.cast(kind)})
    expected = [(b"a", None), (None, b"1"), (b"b", b"2"), (b"", b"3"), ("ä".encode(), None)]
    for start in range(6):
        rows = read(encode_batches(table.slice(start), 1))
        assert [(row["key"], row["value"]) for row in rows] == expected[start:]


def test_fixed_size_bytes_and_other_libraries_tables() -> None:
    fixed = pa.table({"value": pa.array([b"ab", None], pa.binary(2))})
    assert [row["value"] for row in read(encode_batches(fixed, 1))] == [b"ab", None]

    class Foreign:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return fixed.__arrow_c_stream__(requested_schema)

    assert len(read(encode_batches(Foreign(), 1))) == 2
    assert len(read(encode_batches(fixed.to_batches()[0], 1))) == 2


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_column_is_written(compression: str) -> None:
    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    rows = {
        "value": [b"x" * 50, b"y" * 50, b"z" * 50],
        "key": ["k", None, "k"],
        "headers": [[("h", b"1"), ("i", None)], None, []],
        "partition": [2, 1, None],
        "timestamp": [1_000, 2_000, 3_000],
        "offset": [7, 8, 9],
    }
    schema = pa.schema(
        [
            ("value", pa.binary()),
            ("key", pa.string()),
            ("headers", pa.list_(pair)),
            ("partition", pa.int64()),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("offset", pa.int64()),
        ]
    )
    batches = encode_batches(pa.table(rows, schema=schema), 4, compression=compression)
    by_key = murmur2(b"k") % 4
    by_value = {row["value"][:1]: row for row in read(batches)}
    assert [by_value[name]["partition"] for name in (b"x", b"y", b"z")] == [2, 1, by_key]
    assert by_value[b"x"]["headers"] == [{"key": "h", "value": b"1"}, {"key": "i", "value": None}]
    assert by_value[b"y"]["headers"] is None
    assert [by_value[name]["timestamp"].microsecond for name in (b"x", b"y", b"z")] == [1000, 2000, 3000]
    header = read_header(batches[0][1])
    assert (header.base_offset, header.producer_id, header.magic) == (0, -1, 2)


def test_headers_may_be_maps_and_slices_and_have_values_under_nulls() -> None:
    maps = pa.array([[("a", b"1")], None, [("b", None)]], pa.map_(pa.string(), pa.binary()))
    table = pa.table({"value": ["x", "y", "z"], "headers": maps}).slice(1)
    assert [row["headers"] for row in read(encode_batches(table, 1))] == [None, [{"key": "b", "value": None}]]
    pairs = pa.array([("a", b"1"), ("b", b"2")], pa.struct([("key", pa.string()), ("value", pa.binary())]))
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 2]), pairs, mask=pa.array([True, False]))
    table = pa.table({"value": ["x", "y"], "headers": hidden})
    assert [row["headers"] for row in read(encode_batches(table, 1))] == [None, [{"key": "b", "value": b"2"}]]


def test_times_may_have_any_unit_and_null_is_now() -> None:
    times = pa.array([5, None], pa.timestamp("s"))
    first, second = read(encode_batches(pa.table({"value": ["a", "b"], "timestamp": times}), 1))
    assert first["timestamp"].timestamp() == 5
    assert second["timestamp"].year > 2020
    plain = pa.table({"value": ["a"], "timestamp": pa.array([5_000], pa.int64())})
    assert read(encode_batches(plain, 1))[0]["timestamp"].timestamp() == 5


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"key": ["a"]}, "must have the column value"),
        ({"value": ["a"], "keys": ["a"]}, "this one has value, keys"),
        ({"value": [1]}, "the column value must be binary or string, not int64"),
        ({"value": ["a"], "headers": ["b"]}, "must be a list of pairs"),
        ({"value": ["a"], "partition": ["b"]}, "column partition must have 32-bit integers"),
        ({"value": ["a"], "partition": [-1]}, "a partition cannot be negative"),
        ({"value": ["a"], "partition": [1]}, "row 0 is for partition 1"),
        ({"value": ["a"], "timestamp": ["b"]}, "column timestamp must have times or milliseconds"),
        ({"value": ["a"], "timestamp": [-5]}, "a timestamp cannot be negative"),
    ],
)
def test_tables_that_cannot_be_sent_are_refused_with_a_reason(columns: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        encode_batches(pa.table(columns), 1)


def test_a_row_that_is_too_large_is_found_before_any_is_encoded() -> None:
    table = pa.table({"value": ["a", "b" * 1000]})
    with pytest.raises(OverflowError, match="1000 bytes"):
        next(encoded(record_batches(table), Encoding(1, 10, 500)))


def test_an_empty_table_is_no_batches() -> None:
    empty = pa.table({"value": pa.array([], pa.binary()), "key": pa.array([], pa.string())})
    assert encode_batches(empty, 3) == []
