"""Upserts of small batches, as the driver does them, and the parts that tasks share with it."""

import json
import warnings
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from tests.unit.spark.tables.filling import append, deleted, orders, rows_of, upsert

from barnabas.spark.tables import upserting
from barnabas.spark.tables.bounds import possible_files
from barnabas.spark.tables.fitting import newest_of_each_key
from barnabas.spark.tables.rewriting import by_file, positions_of
from barnabas.spark.tables.store import maintain, store_of
from barnabas.spark.tables.target import Conflict, Mark, TableError, TableTarget
from barnabas.spark.tables.upserting import upsert_here, upsert_into
from barnabas.spark.tables.versions import StoredFile


@pytest.fixture(autouse=True)
def _quiet_libraries() -> Iterator[None]:
    """pyiceberg and SQLAlchemy give warnings, and the garbage collector closes connections to SQLite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(params=("delta", "iceberg"))
def target(request: pytest.FixtureRequest, tmp_path: Path) -> TableTarget:
    return TableTarget(str(tmp_path / "orders"), format=request.param, mode="upsert", key=("id",))


def stored(target: TableTarget) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in rows_of(target)]


def test_rows_are_replaced_and_deleted(target: TableTarget) -> None:
    upsert(target, orders((1, "tea", 2.5), (2, "tea", 3.0), (3, "tea", 4.0)), Mark("query", 0))
    changed = orders((2, "coffee", 9.0), (4, "tea", 5.0), (1, "tea", 0.0), (8, "tea", 0.0))
    upsert(target, deleted(changed, False, False, True, True), Mark("query", 1))
    assert stored(target) == [(2, "coffee", 9.0), (3, "tea", 4.0), (4, "tea", 5.0)]
    assert store_of(target).last_batch("query") == 1


def test_a_batch_that_comes_twice_is_there_once(target: TableTarget) -> None:
    upsert(target, orders((1, "tea", 2.5)), Mark("query", 0))
    upsert(target, orders((1, "late", 9.0)), Mark("query", 0))
    assert stored(target) == [(1, "tea", 2.5)]


def test_a_key_that_gets_a_wider_type(target: TableTarget) -> None:
    upsert(target, pyarrow.table({"id": pyarrow.array([1, 2], "int32"), "n": [1, 2]}), Mark("query", 0))
    wide = pyarrow.table({"id": pyarrow.array([2, 1 << 40], "int64"), "n": [3, 4]})
    if target.format == "delta":
        with pytest.raises(TableError, match=r"The key id .* convert it in a step"):
            upsert(target, wide, Mark("query", 1))
        return
    upsert(target, wide, Mark("query", 1))
    assert {row["id"]: row["n"] for row in rows_of(target)} == {1: 1, 2: 3, 1 << 40: 4}


def test_a_batch_without_rows_leaves_its_mark(target: TableTarget) -> None:
    upsert(target, orders((1, "tea", 2.5)), Mark("query", 0))
    upsert(target, orders((1, "tea", 2.5)).slice(0, 0), Mark("query", 1))
    assert stored(target) == [(1, "tea", 2.5)]
    assert store_of(target).last_batch("query") == 1


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_key_of_two_columns_that_may_be_null(tmp_path: Path, format_: str) -> None:
    target = TableTarget(str(tmp_path / "t"), format=format_, mode="upsert", key=("id", "category"))
    first = pyarrow.table({"id": [1, 1, 2], "category": ["tea", "coffee", None], "amount": [2.5, 3.0, 4.0]})
    upsert(target, first, Mark("query", 0))
    later = pyarrow.table({"id": [1, 2], "category": ["tea", None], "amount": [9.0, 8.0]})
    upsert(target, later, Mark("query", 1))
    assert sorted(stored(target), key=str) == [(1, "coffee", 3.0), (1, "tea", 9.0), (2, None, 8.0)]


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_row_moves_to_another_partition(tmp_path: Path, format_: str) -> None:
    target = TableTarget(
        str(tmp_path / "orders"), format=format_, mode="upsert", key=("id",), partition_by=("category",)
    )
    upsert(target, orders((1, "a/b c", 2.5), (2, "a/b c", 3.0), (3, "ü%20", 1.0)), Mark("query", 0))
    upsert(target, orders((1, "ü%20", 9.0), (4, "tea", 1.0)), Mark("query", 1))
    upsert(target, deleted(orders((3, "", 0.0)), True), Mark("query", 2))
    assert stored(target) == [(1, "ü%20", 9.0), (2, "a/b c", 3.0), (4, "tea", 1.0)]
    assert store_of(target).count() == 3


def test_columns_that_the_batch_does_not_have_keep_their_values(target: TableTarget) -> None:
    upsert(target, orders((1, "tea", 2.5), (2, "tea", 3.0)), Mark("query", 0))
    part = pyarrow.table({"amount": [9.0, 8.0], "id": [2, 3], "city": ["Graz", "Linz"]})
    upsert(target, part, Mark("query", 1))
    assert stored(target) == [(1, "tea", 2.5, None), (2, "tea", 9.0, "Graz"), (3, None, 8.0, "Linz")]


def test_rows_that_have_a_key_twice_are_all_replaced(target: TableTarget) -> None:
    rows = orders((1, "tea", 2.5), (1, "tea", 3.0), (2, "tea", 4.0))
    append(target, rows, Mark("another", 0))
    append(target, rows, Mark("another", 1))
    upsert(target, orders((1, "coffee", 9.0)), Mark("query", 0))
    assert stored(target) == [(1, "coffee", 9.0), (2, "tea", 4.0), (2, "tea", 4.0)]


def test_only_files_with_keys_of_the_batch_are_rewritten(target: TableTarget) -> None:
    for batch in range(3):
        rows = orders((batch * 10, "tea", 1.0), (batch * 10 + 5, "tea", 1.0))
        upsert(target, rows, Mark("query", batch))
    before = {file.path for file in store_of(target).version().files}
    # 14 is within the bounds of a file, but not in it.
    upsert(target, orders((25, "coffee", 2.0), (14, "milk", 2.0)), Mark("query", 3))
    after = {file.path for file in store_of(target).version().files}
    assert (len(before - after), len(after - before)) == (1, 2)
    assert store_of(target).count() == 7


def test_another_change_meanwhile_is_a_conflict(target: TableTarget) -> None:
    upsert(target, orders((1, "tea", 2.5)), Mark("query", 0))
    append(target, orders((2, "tea", 2.5)), Mark("another", 0))
    for change in (
        lambda: append(target, orders((3, "tea", 2.5)), Mark("another", 1)),
        lambda: maintain(target, keep_days=1),
    ):
        version = store_of(target).version()
        change()
        with pytest.raises(Conflict):
            version.replace(version.files[:1], [], Mark("query", 1))
    assert store_of(target).count() == 3


def test_large_files_are_left_to_tasks(target: TableTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    upsert(target, orders((1, "tea", 2.5)), Mark("query", 0))
    monkeypatch.setattr(upserting, "FILE_BYTES_HERE_MAX", 10)
    rows = orders((1, "coffee", 2.5))
    store = store_of(target)
    assert not upsert_here(upsert_into(store, target, rows.schema, Mark("query", 1)), rows)
    assert stored(target) == [(1, "tea", 2.5)]
    # The bounds say that this key is in no file.
    upsert(target, orders((2, "coffee", 2.5)), Mark("query", 1))


def test_a_key_that_is_not_there_is_reported(target: TableTarget) -> None:
    with pytest.raises(TableError, match="have no column id; they have number"):
        upsert(target, pyarrow.table({"number": [1]}), Mark("query", 0))


def test_a_key_of_another_type_is_reported(target: TableTarget) -> None:
    upsert(target, orders((1, "tea", 2.5)), Mark("query", 0))
    with pytest.raises(TableError, match=r"The key id .* type string, which does not fit the table"):
        upsert(target, pyarrow.table({"id": ["1"]}), Mark("query", 1))


def test_the_newest_row_of_each_key() -> None:
    target = TableTarget("t", mode="upsert", key=("id",), order_by="amount")
    rows = orders((1, "old", 1.0), (1, "new", 5.0), (1, "older", 0.5), (2, "only", 1.0), (1, "same", 5.0))
    missing = pyarrow.table({"id": [1], "category": ["none"], "amount": pyarrow.nulls(1, pyarrow.float64())})
    newest = newest_of_each_key(pyarrow.concat_tables([rows, missing]), target).to_pylist()
    assert sorted(row["category"] for row in newest) == ["only", "same"]


def files(**bounds: list[tuple[Any, Any]]) -> list[StoredFile]:
    count = len(next(iter(bounds.values())))
    return [
        StoredFile(str(number), 1, {name: limits[number] for name, limits in bounds.items()})
        for number in range(count)
    ]


@pytest.mark.parametrize(
    "limits, keys, expected",
    [
        ([(1, 5), (6, 9), (20, 30)], [0, 6, 12, 31], [1]),
        ([(1, 5), (6, 9), (20, 30)], [1, 30], [0, 2]),
        ([("a", "c"), ("d", "f"), ("ö", "ü")], ["cc", "d", "ß"], [1]),
        ([("a", "c"), ("d", "f")], ["b", None], [0, 1]),
        (
            [(date(2026, 1, 1), date(2026, 1, 31)), (date(2026, 3, 1), date(2026, 3, 2))],
            [date(2026, 1, 5)],
            [0],
        ),
        ([(1.0, 2.0), (3.0, 4.0)], [1.5], [0, 1]),
        ([(1, 5)], [], []),
    ],
)
def test_files_are_ruled_out_by_their_bounds(limits: Any, keys: Any, expected: list[int]) -> None:
    kind = pyarrow.array([limits[0][0]]).type
    table = pyarrow.table({"id": pyarrow.array(keys, kind)})
    assert possible_files(files(id=limits), table) == expected


def test_each_column_of_a_key_rules_out_files() -> None:
    stored_files = files(id=[(1, 5), (1, 5), (6, 9)], category=[("a", "b"), ("c", "d"), ("a", "b")])
    stored_files.append(StoredFile("no bounds", 1, {}))
    keys = pyarrow.table({"id": [3], "category": ["a"]})
    assert possible_files(stored_files, keys) == [0, 3]


def test_keys_are_found() -> None:
    keys = pyarrow.table({"a": [1, 1, None], "b": ["x", None, "y"]})
    stored = pyarrow.table({"a": [None, 1, 2, 1, 1], "b": ["y", "y", "x", "x", None]})
    assert positions_of(keys, stored).to_pylist() == [2, None, None, 0, 1]
    assert positions_of(keys.select(["a"]).slice(1), stored.select(["a"])).to_pylist() == [1, 0, None, 0, 0]


def test_batches_are_split_by_file() -> None:
    batches = [pyarrow.table({"file": [0, 0, 1], "row": [1, 2, 3]}), pyarrow.table({"file": [1], "row": [4]})]
    parts = [(number, part.column("row").to_pylist()) for number, part in by_file(batches, "file")]
    assert parts == [(0, [1, 2]), (1, [3]), (1, [4])]


def test_delta_files_have_statistics(tmp_path: Path) -> None:
    target = TableTarget(str(tmp_path / "t"), mode="upsert", key=("at", "id", "day"))
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    rows = {"id": ["b", "a"], "at": pyarrow.array([at, at], pyarrow.timestamp("us", "UTC"))}
    rows |= {"amount": [1.0, float("nan")], "day": [date(2026, 1, 2), None], "list": [[1], [2]]}
    upsert(target, pyarrow.table(rows), Mark("query", 0))
    entry = (tmp_path / "t" / "_delta_log" / f"{1:020}.json").read_text()
    stats = next(
        json.loads(json.loads(line)["add"]["stats"]) for line in entry.splitlines() if '"add"' in line
    )
    assert stats == {
        "numRecords": 2,
        "minValues": {"id": "a", "at": "2026-01-02T03:04:05.678901Z", "day": "2026-01-02"},
        "maxValues": {"id": "b", "at": "2026-01-02T03:04:05.678901Z", "day": "2026-01-02"},
        "nullCount": {"id": 0, "at": 0, "day": 1},
    }
    bounds = store_of(target).version().files[0].bounds
    assert bounds["id"] == ("a", "b")
    assert bounds["at"][0] == at < bounds["at"][1]
