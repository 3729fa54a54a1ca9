"""Appending to a batch, compiled and interpreted: the bytes are the same as those of encode_records."""

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernels.interpreting import interpreted

from barnabas.kernels import record_append as compiled
from barnabas.kernels.record_append import encode_records
from barnabas.records.batch import HEADER_SIZE

plain = interpreted(compiled)
MODULES = pytest.mark.parametrize("module", [compiled, plain], ids=["compiled", "interpreted"])

data = st.one_of(st.none(), st.binary(max_size=200))
Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]
headers = st.one_of(st.none(), st.lists(st.tuples(st.text(max_size=5), data), max_size=3))
records = st.lists(st.tuples(st.integers(0, 2**62), data, data, headers), min_size=1, max_size=200)


@given(records)
def test_the_bytes_are_those_of_the_codec(
    rows: list[Row],
) -> None:
    whole = [(timestamp, key, value, with_headers or []) for timestamp, key, value, with_headers in rows]
    expected = bytes(HEADER_SIZE) + encode_records(whole, rows[0][0])
    for module in (compiled, plain):
        batch = module.RecordBuffer(10**9)
        futures = [batch.append(*row) for row in rows]
        assert batch.data == expected
        assert (batch.count, batch.base_timestamp) == (len(rows), rows[0][0])
        assert batch.max_timestamp == max(row[0] for row in rows)
        for index, (future, (timestamp, key, value, _)) in enumerate(zip(futures, rows, strict=True)):
            assert (future.index, future.timestamp) == (index, timestamp)
            assert future.key_size == (-1 if key is None else len(key))
            assert future.value_size == (-1 if value is None else len(value))
            assert future.batch is batch


@given(records, st.integers(0, 600))
def test_only_the_first_record_may_exceed_the_capacity(rows: list[Row], capacity: int) -> None:
    kept: list[list[bool]] = []
    for module in (compiled, plain):
        batch = module.RecordBuffer(capacity)
        kept.append([batch.append(*row) is not None for row in rows])
        assert kept[-1][0]
        assert len(batch.data) <= capacity or batch.count == 1
        assert batch.count == sum(kept[-1])
    assert kept[0] == kept[1]


@MODULES
def test_a_closed_batch_refuses_records(module: ModuleType) -> None:
    batch = module.RecordBuffer(1000)
    assert batch.append(5, None, b"v") is not None
    before = bytes(batch.data)
    assert batch.close() is True
    assert batch.close() is False
    assert batch.append(6, None, b"w") is None
    assert (bytes(batch.data), batch.count, batch.max_timestamp) == (before, 1, 5)
    batch.forget_data()
    assert batch.data == b""


def test_a_failing_header_leaves_the_batch_as_it_was() -> None:
    for module in (compiled, plain):
        batch = module.RecordBuffer(1000)
        batch.append(5, None, b"v")
        before = bytes(batch.data)
        with pytest.raises((TypeError, AttributeError)):
            batch.append(5, None, b"v", [("name", 7)])
        assert (bytes(batch.data), batch.count) == (before, 1)
