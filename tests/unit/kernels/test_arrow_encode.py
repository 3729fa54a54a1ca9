"""Encoding Arrow columns as batches: both forms of the kernel write the same bytes as the other encoder."""

from array import array
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted

from barnabas.kernels import arrow_encode as compiled
from barnabas.kernels.hashing import murmur2
from barnabas.kernels.record_append import encode_records
from barnabas.records.batch import HEADER_SIZE

plain = interpreted(compiled)
BOTH = pytest.mark.parametrize("kernel", [compiled, plain], ids=["compiled", "interpreted"])
UNLIMITED = 1 << 30

cells = st.none() | st.binary(max_size=30)
headers = st.lists(st.tuples(st.text(max_size=4), cells), max_size=3)
rows = st.lists(
    st.tuples(st.integers(0, 1 << 62), cells, cells, headers, st.integers(-1, 3)), min_size=1, max_size=40
)
Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]], int]


def column(kernel: Any, given: list[bytes | None], first: int = 0) -> Any:
    """The cells as Arrow stores them, after `first` rows that a slice leaves out."""
    whole = [b"left out"] * first + given
    ends, bits = array("q", (0,)), bytearray((len(whole) + 7) // 8)
    for row, cell in enumerate(whole):
        ends.append(ends[-1] + len(cell or b""))
        if cell is not None:
            bits[row >> 3] |= 1 << (row & 7)
    data = b"".join(cell or b"" for cell in whole)
    return kernel.BytesInput(
        first, memoryview(bits) if None in whole else None, memoryview(ends), memoryview(data)
    )


def loaded(kernel: Any, rows: list[Row], *, batch_bytes: int, first: int = 0, **options: Any) -> Any:
    encoder = kernel.TableEncoder(
        4, batch_bytes, options.get("most", UNLIMITED), [2, 0, 1, 3], options.get("ignores_keys", False)
    )
    pairs = [pair for row in rows for pair in row[3]]
    ends = array("q", (0,))
    for row in rows:
        ends.append(ends[-1] + len(row[3]))
    encoder.load(
        column(kernel, [row[2] for row in rows], first),
        column(kernel, [row[1] for row in rows], first),
        column(kernel, [name.encode() for name, _ in pairs]),
        column(kernel, [value for _, value in pairs]),
        memoryview(ends),
        memoryview(array("i", [row[4] for row in rows])),
        memoryview(array("q", [row[0] for row in rows])),
    )
    return encoder


def encoded(kernel: Any, rows: list[Row], step: int = UNLIMITED, **options: Any) -> list[Any]:
    """(partition, data, count, base timestamp, highest timestamp) of each batch."""
    encoder = loaded(kernel, rows, **options)
    finished: list[Any] = []
    row = 0
    while row < len(rows):
        row = encoder.encode(row, len(rows), step)
        finished += encoder.finished
        encoder.finished.clear()
    encoder.finish()
    finished += encoder.finished
    return [
        (batch.partition, batch.data, batch.count, batch.base_timestamp, batch.max_timestamp)
        for batch in finished
    ]


@BOTH
@given(rows=rows, first=st.integers(0, 9))
def test_the_largest_row_is_the_one_with_most_bytes_of_key_and_value(
    kernel: Any, rows: Any, first: int
) -> None:
    keys, values = ([row[place] for row in rows] for place in (1, 2))
    sizes = [len(key or b"") + len(value or b"") for key, value in zip(keys, values, strict=True)]
    values_given = column(kernel, values, first)
    assert kernel.largest_row(values_given, column(kernel, keys, first), len(rows)) == max(sizes)
    assert kernel.largest_row(values_given, None, len(rows)) == max(len(value or b"") for value in values)
    assert kernel.largest_row(values_given, None, 0) == 0


@given(rows=rows, batch_bytes=st.integers(0, 400), first=st.integers(0, 9), step=st.integers(1, 300))
def test_both_forms_give_the_same_batches(rows: Any, batch_bytes: int, first: int, step: int) -> None:
    batches = [
        encoded(kernel, rows, step, batch_bytes=batch_bytes, first=first) for kernel in (compiled, plain)
    ]
    assert batches[0] == batches[1]


@BOTH
@given(rows=rows, batch_bytes=st.integers(0, 400), ignores_keys=st.booleans())
@example(
    rows=[(0, None, None, [], 0), (0, None, b"", [("", None)], -1), (0, None, b"", [("", None)], 0)],
    batch_bytes=0,
    ignores_keys=False,
)
def test_rows_are_in_the_batches_as_the_other_encoder_writes_them(
    kernel: Any, rows: Any, batch_bytes: int, ignores_keys: bool
) -> None:
    """Each batch has the next rows of its partition; only rows without key and number go anywhere."""
    # If rows have the same bytes, those that belong to this partition are matched first.
    left = sorted(rows, key=lambda row: may_go_anywhere(row, ignores_keys))
    for partition, data, count, base_timestamp, max_timestamp in encoded(
        kernel, rows, batch_bytes=batch_bytes, ignores_keys=ignores_keys
    ):
        taken = []
        position = HEADER_SIZE
        for index in range(count):
            for row in left:
                expected = bytes(encode_records([row[:4]], base_timestamp, [index]))
                if data[position : position + len(expected)] == expected and belongs(
                    row, partition, ignores_keys
                ):
                    break
            else:
                pytest.fail("no remaining row has these bytes")
            taken.append(row)
            left.remove(row)
            position += len(expected)
        assert position == len(data)
        assert len(data) <= max(batch_bytes, HEADER_SIZE + 40 + len(expected))
        assert base_timestamp == taken[0][0]
        assert max_timestamp == max(row[0] for row in taken)
    assert left == []


def belongs(row: Row, partition: int, ignores_keys: bool) -> bool:
    _, key, _, _, number = row
    if number >= 0:
        return number == partition
    return may_go_anywhere(row, ignores_keys) or murmur2(key or b"") % 4 == partition


def may_go_anywhere(row: Row, ignores_keys: bool) -> bool:
    return row[4] < 0 and (row[1] is None or ignores_keys)


@BOTH
def test_rows_of_a_partition_keep_their_order_across_batches(kernel: Any) -> None:
    rows: list[Row] = [(5, None, b"%03d" % index, [], 1) for index in range(100)]
    batches = encoded(kernel, rows, batch_bytes=200)
    assert len(batches) > 3
    assert [value for each in batches for value in values(each)] == [row[2] for row in rows]


def values(finished: Any) -> list[bytes]:
    text = bytes(finished[1][HEADER_SIZE:])
    return [text[start + 6 : start + 9] for start in range(0, len(text), 10)]


@BOTH
def test_rows_without_a_key_fill_one_batch_after_the_other(kernel: Any) -> None:
    rows: list[Row] = [(5, None, b"%03d" % index, [], -1) for index in range(100)]
    batches = encoded(kernel, rows, batch_bytes=200)
    assert [each[0] for each in batches[:5]] == [2, 0, 1, 3, 2]
    assert len({each[2] for each in batches[:-1]}) == 1


@BOTH
def test_a_row_that_is_too_large_or_for_no_partition_is_refused(kernel: Any) -> None:
    small: Row = (5, None, b"x", [], -1)
    for row, kind, complaint in (
        ((5, None, b"x" * 100, [], -1), OverflowError, "row 1 has 100 bytes"),
        ((5, None, None, [("name", b"x" * 100)], -1), OverflowError, "row 1"),
        ((5, None, b"", [], 4), ValueError, "row 1 is for partition 4"),
    ):
        encoder = loaded(kernel, [small, row], batch_bytes=500, most=160)
        with pytest.raises(kind, match=complaint):
            encoder.encode(0, 2, UNLIMITED)
        encoder.finish()
        assert [batch.count for batch in encoder.finished] == [1]


@BOTH
@pytest.mark.parametrize("ends", [[0, 5], [3, 2], [-1, 1], [0], []])
@pytest.mark.parametrize("place", ["value", "key", "name"])
def test_wrong_offsets_are_refused(kernel: Any, ends: list[int], place: str) -> None:
    wrong = kernel.BytesInput(0, None, memoryview(array("q", ends)), memoryview(b"abcd"))
    fine = column(kernel, [b"x"])
    encoder = kernel.TableEncoder(1, 100, UNLIMITED, [0])
    header_ends = memoryview(array("q", (0, 1)))
    encoder.load(
        wrong if place == "value" else fine,
        wrong if place == "key" else None,
        wrong if place == "name" else None,
        fine if place == "name" else None,
        header_ends if place == "name" else None,
        None,
        7,
    )
    with pytest.raises(ValueError, match="row 0 reaches beyond its buffers"):
        encoder.encode(0, 1, UNLIMITED)


@BOTH
def test_columns_that_are_too_short_are_refused(kernel: Any) -> None:
    short_bits = kernel.BytesInput(8, memoryview(b"\xff"), memoryview(array("q", [0] * 20)), memoryview(b""))
    two = column(kernel, [b"x", b"y"])
    numbers, times = memoryview(array("i", (0,))), memoryview(array("q", (0,)))
    for columns in (
        (short_bits, None, None, None, None, None, 7),
        (two, None, None, None, None, numbers, 7),
        (two, None, None, None, None, None, times),
        (two, None, two, two, memoryview(array("q", (0, 0))), None, 7),
        (two, None, two, two, memoryview(array("q", (0, 0, -1))), None, 7),
    ):
        encoder = kernel.TableEncoder(1, 100, UNLIMITED, [0])
        encoder.load(*columns)
        with pytest.raises(ValueError, match="row"):
            encoder.encode(0, 2, UNLIMITED)
    for spread in ([], [1], [-1]):
        with pytest.raises(ValueError, match="partitions"):
            kernel.TableEncoder(1, 100, UNLIMITED, spread)
