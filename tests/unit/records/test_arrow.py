"""Record sets as Arrow batches: the schema of Spark's Kafka connector, bounds, transactions, damage."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.records.stamping import stamp

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.arrow import (
    RecordColumns,
    append_fetched,
    append_records,
    kafka_columns,
    kafka_schema,
)
from barnabas.records.builder import ABORT_MARKER, COMMIT_MARKER, build_batch, control_batch
from barnabas.records.record_set import RecordSet


def batch(base: int, *values: bytes, **options: Any) -> bytes:
    return bytes(build_batch([(1000, None, value, ()) for value in values], base_offset=base, **options))


def transactional(base: int, producer_id: int, *values: bytes) -> bytes:
    return batch(
        base, *values, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )


def marker(base: int, kind: int, producer_id: int) -> bytes:
    made = control_batch(kind, 0, producer_id=producer_id, producer_epoch=0, timestamp=5)
    stamp(made, 0, base, 3)
    return bytes(made)


def values(columns: RecordColumns) -> list[Any]:
    cells: list[Any] = columns.finish("t", 0)["value"].to_pylist()
    return cells


def test_the_schema_is_that_of_sparks_kafka_connector() -> None:
    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    assert kafka_schema(include_headers=True) == pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("timestampType", pa.int32()),
            ("headers", pa.list_(pa.field("element", pair))),
        ]
    )
    assert tuple(kafka_schema().names) == kafka_columns() == kafka_columns(True)[:-1]
    assert kafka_schema(columns=("offset", "value")).names == ["offset", "value"]
    with pytest.raises(ValueError, match="unknown column colour"):
        kafka_schema(columns=("colour",))


optional_bytes = st.none() | st.binary(max_size=9)
rows = st.lists(
    st.tuples(
        st.integers(-1, 1 << 41),
        optional_bytes,
        optional_bytes,
        st.lists(st.tuples(st.text(max_size=3), optional_bytes), max_size=2),
    ),
    min_size=1,
    max_size=12,
)


@given(rows=rows, codec=st.integers(0, 4), append_time=st.none() | st.integers(0, 1 << 40))
def test_a_batch_of_rows_is_what_was_written(rows: Any, codec: int, append_time: int | None) -> None:
    columns = RecordColumns()
    data = bytes(build_batch(rows, base_offset=50, compression=codec, log_append_time=append_time))
    assert append_fetched(columns, data, first_offset=0) == 50 + len(rows)
    table = columns.finish("orders", 3)
    table.validate(full=True)
    assert table.schema == kafka_schema(include_headers=True)
    times = table["timestamp"].cast(pa.int64()).to_pylist()
    assert times == [1000 * (row[0] if append_time is None else append_time) for row in rows]
    assert table.drop_columns(["timestamp"]).to_pylist() == [
        {
            "key": key,
            "value": value,
            "topic": "orders",
            "partition": 3,
            "offset": 50 + index,
            "timestampType": int(append_time is not None),
            "headers": [{"key": name, "value": data} for name, data in headers] or None,
        }
        for index, (_, key, value, headers) in enumerate(rows)
    ]


def test_columns_are_empty_after_each_finish() -> None:
    columns = RecordColumns(("value", "offset"))
    append_fetched(columns, batch(0, b"a"), first_offset=0)
    assert values(columns) == [b"a"]
    assert columns.count == columns.size == 0
    assert values(columns) == []
    with pytest.raises(ValueError, match="not decoded: key"):
        columns.finish("t", 0, kafka_schema(columns=("key",)))


def test_rows_of_several_partitions_have_the_right_partition() -> None:
    columns = RecordColumns()
    for topic, partition, count in (("a", 0, 2), ("b", 1, 0), ("a", 2, 1)):
        columns.begin(topic, partition)
        append_fetched(columns, batch(0, *[b"v"] * count), first_offset=0)
    table = columns.finish()
    assert table["topic"].to_pylist() == ["a", "a", "a"]
    assert table["partition"].to_pylist() == [0, 0, 2]


LOG = batch(10, b"a", b"b", b"c") + batch(13, b"d", b"e", compression=3) + batch(20, b"f")


@pytest.mark.parametrize(
    ("first", "end", "expected", "reached"),
    [
        (0, None, [b"a", b"b", b"c", b"d", b"e", b"f"], 21),
        (11, 14, [b"b", b"c", b"d"], 14),
        (13, 15, [b"d", b"e"], 15),
        (15, 20, [], 20),
        (15, 21, [b"f"], 21),
        (30, 31, [], 30),
        (11, 11, [], 11),
    ],
)
def test_only_offsets_within_the_bounds_are_taken(
    first: int, end: int | None, expected: list[bytes], reached: int
) -> None:
    columns = RecordColumns()
    assert append_fetched(columns, LOG, first_offset=first, end_offset=end) == reached
    assert values(columns) == expected


def test_columns_without_room_for_the_next_row_are_full() -> None:
    columns = RecordColumns(("value",), bytes_max=10)
    records = RecordSet(batch(0, b"1234", b"5678", b"90ab"), 0)
    assert append_records(columns, records) == 2
    assert columns.size < 10
    assert columns.is_full, "otherwise a reader would wait forever for space"
    assert values(columns) == [b"1234", b"5678"]
    assert not columns.is_full
    assert append_records(columns, records) == 3
    assert not columns.is_full


def test_columns_that_stopped_at_the_end_offset_are_not_full() -> None:
    columns = RecordColumns(("value",), bytes_max=10)
    assert append_fetched(columns, batch(0, b"1", b"2", b"3"), first_offset=0, end_offset=2) == 2
    assert not columns.is_full


@pytest.mark.parametrize("rows_max", [1, 2, 4, 6])
def test_full_columns_are_finished_and_filled_again(rows_max: int) -> None:
    columns = RecordColumns(rows_max=rows_max)
    for again in (True, False):
        records = RecordSet(LOG, 11)
        tables: list[list[bytes]] = []
        offset = 11
        while offset < 21:
            if again:
                offset = append_records(columns, records, 21)
            else:
                offset = append_fetched(columns, LOG, first_offset=offset, end_offset=21)
            tables.append(values(columns))
        assert [value for each in tables for value in each] == [b"b", b"c", b"d", b"e", b"f"]
        assert [len(each) for each in tables[:-1]] == [rows_max] * (len(tables) - 1)


def test_bytes_max_limits_the_columns_but_not_the_first_row() -> None:
    columns = RecordColumns(bytes_max=5)
    data = batch(0, b"12345678", b"12", b"34", b"56")
    assert append_fetched(columns, data, first_offset=0) == 1
    assert columns.is_full
    assert values(columns) == [b"12345678"]
    assert append_fetched(columns, data, first_offset=1) == 3
    assert values(columns) == [b"12", b"34"]


TRANSACTIONS = (
    transactional(0, 7, b"aborted-1")
    + transactional(1, 8, b"kept-1")
    + marker(2, ABORT_MARKER, 7)
    + transactional(3, 7, b"kept-2")
    + marker(4, COMMIT_MARKER, 7)
    + transactional(5, 8, b"aborted-2")
    + marker(6, ABORT_MARKER, 8)
)


def test_aborted_transactions_are_skipped_also_when_reading_starts_in_the_middle() -> None:
    aborted = [(8, 5), (7, 0)]
    for first, expected in ((0, [b"kept-1", b"kept-2"]), (3, [b"kept-2"]), (5, [])):
        columns = RecordColumns()
        reached = append_fetched(
            columns, TRANSACTIONS, first_offset=first, aborted=aborted, read_committed=True
        )
        assert (reached, values(columns)) == (7, expected)
    columns = RecordColumns()
    assert append_fetched(columns, TRANSACTIONS, first_offset=0, aborted=aborted) == 7
    assert values(columns) == [b"aborted-1", b"kept-1", b"kept-2", b"aborted-2"]


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    columns = RecordColumns()
    assert append_fetched(columns, LOG[:-1], first_offset=10) == 15
    assert append_fetched(columns, LOG[:20], first_offset=10) == 10


def test_damage_is_reported_and_the_rows_before_it_stay() -> None:
    damaged = bytearray(LOG)
    damaged[-1] ^= 0xFF
    columns = RecordColumns()
    with pytest.raises(KafkaError, match="offset 20 does not match its checksum") as raised:
        append_fetched(columns, damaged, first_offset=10)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE
    assert columns.count == 5
    columns = RecordColumns(check_crcs=False)
    with pytest.raises(KafkaError, match=r"of the partition is malformed: .* offset 20"):
        append_fetched(columns, damaged, first_offset=20)
    records = RecordSet(bytes(damaged), 10, check_crcs=False)
    for _ in range(2):
        with pytest.raises(KafkaError, match="offset 20"):
            append_records(columns, records)
    assert values(columns) == [b"a", b"b", b"c", b"d", b"e"]


def test_times_that_do_not_fit_into_microseconds_are_null() -> None:
    columns = RecordColumns()
    data = bytes(build_batch([(1 << 60, b"", b"", ()), (-1, b"", b"", ())]))
    append_fetched(columns, data, first_offset=0)
    assert columns.finish("t", 0)["timestamp"].cast(pa.int64()).to_pylist() == [None, -1000]


def test_header_names_that_are_not_utf8_are_replaced() -> None:
    columns = RecordColumns()
    name = b"\xff\xfea".decode("utf-8", "surrogateescape")
    append_fetched(columns, bytes(build_batch([(0, b"", b"", [(name, b"x"), ("ö", None)])])), first_offset=0)
    table = columns.finish("t", 0)
    table.validate(full=True)
    assert table["headers"].to_pylist() == [[{"key": "��a", "value": b"x"}, {"key": "ö", "value": None}]]
