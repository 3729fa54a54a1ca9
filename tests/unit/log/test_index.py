"""The sparse index files: Kafka's bytes, and the same answers from memory and from disk."""

import dataclasses
import struct
import tempfile
from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.logs import SMALL, LogBench

from barnabas.kernels.log_end import WRITE_CHUNK_ENTRIES
from barnabas.log.disk import RealDisk
from barnabas.log.errors import DamagedIndexError
from barnabas.log.index import OffsetIndex, TimeIndex
from barnabas.log.txn_index import AbortedTransaction, TransactionIndex


def _index(path: Path, entries: list[tuple[int, int]]) -> OffsetIndex:
    index = OffsetIndex(RealDisk(), path, 800)
    index.replace([])
    for entry in entries:
        index.append(*entry)
    return index


def test_entries_are_big_endian(tmp_path: Path) -> None:
    index = _index(tmp_path / "i", [(1, 100), (9, 300)])
    index.seal()
    assert (tmp_path / "i").read_bytes() == struct.pack(">iiii", 1, 100, 9, 300)
    times = TimeIndex(RealDisk(), tmp_path / "t", 800)
    times.replace([(1_700_000_000_000, 7)])
    assert (tmp_path / "t").read_bytes() == struct.pack(">qi", 1_700_000_000_000, 7)
    assert (index.entries_max, times.entries_max) == (100, 66)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 1000), unique=True, max_size=40).map(sorted), st.lists(st.integers(-1, 1001)))
def test_memory_and_disk_find_the_same(keys: list[int], keys_sought: list[int]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "i"
        index = _index(path, [(key, key * 10) for key in keys])
        stored = OffsetIndex(RealDisk(), path, 800)
        index.write_pending()
        assert stored.open()
        for key in keys_sought:
            slot = bisect_right(keys, key)
            expected = (keys[slot - 1], keys[slot - 1] * 10) if slot else None
            assert index.floor(key) == stored.floor(key) == expected
            above = next(((k, k * 10) for k in keys if k * 10 >= key), None)
            assert index.first_with_value_from(key) == stored.first_with_value_from(key) == above
        assert index.last() == stored.last()


def test_entries_reach_the_file_in_chunks(tmp_path: Path) -> None:
    path = tmp_path / "i"
    index = _index(path, [(number, number) for number in range(WRITE_CHUNK_ENTRIES - 1)])
    assert path.stat().st_size == 0
    index.append(10_000, 10_000)
    assert path.stat().st_size == WRITE_CHUNK_ENTRIES * 8


def test_cutting(tmp_path: Path) -> None:
    path = tmp_path / "i"
    index = _index(path, [(1, 10), (5, 50), (9, 90)])
    index.write_pending()
    index.cut_keys_from(5)
    assert index.last() == (1, 10) and path.stat().st_size == 8
    index.append(6, 60)
    index.cut_values_from(60)
    assert len(index) == 1


def test_a_missing_or_odd_file_is_reported(tmp_path: Path) -> None:
    index = OffsetIndex(RealDisk(), tmp_path / "i", 800)
    assert not index.open()
    (tmp_path / "i").write_bytes(bytes(9))
    assert not index.open()
    assert not index.open_active()


def test_a_file_that_shrinks_under_a_search_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "i"
    index = _index(path, [(1, 10), (5, 50), (9, 90)])
    index.seal()
    assert index.floor(9) == (9, 90)
    path.write_bytes(b"")
    with pytest.raises(DamagedIndexError):
        index.floor(9)


def test_the_transaction_index_is_kafkas(tmp_path: Path) -> None:
    path = tmp_path / "x"
    index = TransactionIndex(RealDisk(), path)
    assert index.entries() is None
    index.start([])
    index.append(AbortedTransaction(7, 10, 20, 15))
    assert path.read_bytes() == struct.pack(">hqqqq", 0, 7, 10, 20, 15)
    index.append(AbortedTransaction(8, 12, 30, 31))
    index.truncate(30)
    assert TransactionIndex(RealDisk(), path).entries() == [AbortedTransaction(7, 10, 20, 15)]


def test_an_entry_is_added_when_more_than_the_interval_was_written(tmp_path: Path) -> None:
    """As in Kafka: the bytes before the batch count, and the entry has the last offset of the batch."""
    bench = LogBench(tmp_path, SMALL)
    for _ in range(8):
        bench.append(b"x" * 10, b"y" * 10)
    size = bench.log.active.size // 8
    every = 200 // size + 1
    entries = [bench.log.active.index.get(slot) for slot in range(len(bench.log.active.index))]
    assert entries == [(2 * batch + 1, size * batch) for batch in range(every, 8, every)]
    assert len(bench.log.active.time_index) == 1


def test_a_full_index_rolls_the_segment(tmp_path: Path) -> None:
    config = dataclasses.replace(SMALL, segment_bytes=1 << 20, segment_index_bytes=60, index_interval_bytes=1)
    bench = LogBench(tmp_path, config)
    bench.fill(20)
    assert {len(segment.index) for segment in bench.log.segments[:-1]} == {7}
    assert len(bench.records()) == 60
