"""Tables of each format, without Spark: batches are complete and there once; columns fit or get another
column."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from pyspark.sql.types import StructType
from tests.unit.spark.tables.filling import append, append_files, orders, rows_of, written

from barnabas.spark.tables.fitting import fitting_of
from barnabas.spark.tables.sink import StreamTableWriter
from barnabas.spark.tables.store import Store, store_of
from barnabas.spark.tables.target import Mark, TableError, TableTarget, target_of

FORMATS = ("delta", "iceberg", "parquet")
COUNTS = pyarrow.map_(pyarrow.string(), pyarrow.int64())


@pytest.fixture(autouse=True)
def _quiet_libraries() -> Iterator[None]:
    """pyiceberg and SQLAlchemy give warnings, and the garbage collector closes connections to SQLite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(params=FORMATS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> TableTarget:
    return TableTarget(str(tmp_path / "orders"), format=request.param)


def test_a_table_that_is_not_there(target: TableTarget) -> None:
    store = store_of(target)
    assert store.schema() is None
    assert store.last_batch("query") == -1


def test_batches_are_appended(target: TableTarget) -> None:
    append(target, orders((1, "tea", 2.5)), Mark("query", 0))
    append(target, orders((2, "coffee", 3.5), (3, "tea", 1.0)), Mark("query", 1))
    assert [row["id"] for row in rows_of(target)] == [1, 2, 3]
    assert store_of(target).count() == 3
    assert store_of(target).last_batch("query") == 1


def test_a_batch_that_comes_twice_is_there_once(target: TableTarget) -> None:
    for _ in range(2):
        append(target, orders((1, "tea", 2.5)), Mark("query", 0))
    append(target, orders((2, "tea", 2.5)), Mark("another", 0))
    assert [row["id"] for row in rows_of(target)] == [1, 2]


@pytest.mark.parametrize("format_", FORMATS)
def test_partitions_are_directories(tmp_path: Path, format_: str) -> None:
    target = TableTarget(str(tmp_path / "orders"), format=format_, partition_by=("category",))
    append(target, orders((1, "tea", 2.5), (2, "a/b c", 1.0), (3, "tea", 4.0)), Mark("query", 0))
    assert {(row["id"], row["category"]) for row in rows_of(target)} == {(1, "tea"), (2, "a/b c"), (3, "tea")}
    assert {path.parent.name for path in (tmp_path / "orders").rglob("part-*.parquet")} == {
        "category=tea",
        "category=a%2Fb%20c",
    }


def test_new_columns_are_added(target: TableTarget) -> None:
    append(target, orders((1, "tea", 2.5)), Mark("query", 0))
    wider = orders((2, "tea", 2.5)).append_column("city", pyarrow.array(["Graz"]))
    append(target, wider, Mark("query", 1))
    assert [row["city"] for row in rows_of(target)] == [None, "Graz"]


def test_values_of_a_type_that_does_not_fit_get_another_column(target: TableTarget) -> None:
    append(target, orders((1, "tea", 2.5)), Mark("query", 0))
    texts = pyarrow.table({"id": [2], "category": ["tea"], "amount": ["much"]})
    append(target, texts, Mark("query", 1))
    assert [(row["amount"], row["amount__string"]) for row in rows_of(target)] == [
        (2.5, None),
        (None, "much"),
    ]


def test_a_narrower_type_is_widened(target: TableTarget) -> None:
    append(target, orders((1, "tea", 2.5)), Mark("query", 0))
    narrow = pyarrow.table({"id": pyarrow.array([2], pyarrow.int32()), "category": ["tea"], "amount": [3.0]})
    append(target, narrow, Mark("query", 1))
    assert [row["id"] for row in rows_of(target)] == [1, 2]


def counted(number: int, kind: str, price: float, price_kind: str) -> pyarrow.Table:
    return pyarrow.table(
        {
            "id": [number],
            "count": pyarrow.array([number], kind),
            "price": pyarrow.array([price], price_kind),
        }
    )


def test_a_wider_type_widens_the_column_where_the_format_allows_it(target: TableTarget) -> None:
    append(target, counted(1, "int32", 0.5, "float32"), Mark("query", 0))
    late = written(target, counted(2, "int32", 1.5, "float32"))
    append(target, counted(1 << 40, "int64", 0.1, "float64"), Mark("query", 1))
    # A query that has started before the column was wider goes on.
    append_files(store_of(target), late, Mark("another", 0))
    rows = {row["id"]: row for row in rows_of(target)}
    if target.format == "iceberg":
        assert [(row["count"], row["price"]) for row in rows.values()] == [(1, 0.5), (1 << 40, 0.1), (2, 1.5)]
        assert list(rows[2]) == ["id", "count", "price"]
        return
    assert [(row["count"], row["count__int64"]) for row in rows.values()] == [
        (1, None),
        (None, 1 << 40),
        (2, None),
    ]
    assert [row["price__double"] for row in rows.values()] == [None, 0.1, None]


def test_a_column_beside_stays_in_use(tmp_path: Path) -> None:
    """Tables of earlier versions have such columns."""
    target = TableTarget(str(tmp_path / "orders"), format="iceberg")
    narrow, wide = pyarrow.array([1], "int32"), pyarrow.array([2], "int64")
    append(target, pyarrow.table({"id": [1], "n": narrow, "n__int64": wide}), Mark("query", 0))
    append(target, pyarrow.table({"id": [2], "n": pyarrow.array([3], "int64")}), Mark("query", 1))
    assert [(row["n"], row["n__int64"]) for row in rows_of(target)] == [(1, 2), (None, 3)]


@pytest.mark.parametrize("format_", FORMATS)
def test_partition_columns_keep_their_type(tmp_path: Path, format_: str) -> None:
    target = TableTarget(str(tmp_path / "orders"), format=format_, partition_by=("n",))
    append(target, pyarrow.table({"id": [1], "n": pyarrow.array([7], "int32")}), Mark("query", 0))
    schema = StructType().add("id", "long").add("n", "long")
    with pytest.raises(TableError, match=r"partition column n .* int64, which does not fit"):
        StreamTableWriter(target, schema)


def test_nested_values_stay_in_their_column(target: TableTarget) -> None:
    rows = {"place": [{"city": "Graz"}], "tags": [["a"]], "counts": pyarrow.array([[("a", 1)]], COUNTS)}
    for batch in range(2):
        append(target, pyarrow.table({"id": [batch], **rows}), Mark("query", batch))
    expected = {"place": {"city": "Graz"}, "tags": ["a"], "counts": [("a", 1)]}
    assert rows_of(target) == [{"id": 0, **expected}, {"id": 1, **expected}]


def test_a_table_that_must_not_evolve_says_so(target: TableTarget) -> None:
    append(target, orders((1, "tea", 2.5)), Mark("query", 0))
    with pytest.raises(TableError, match="no column for city"):
        fitting_of(
            store_of(target).schema(),
            pyarrow.schema([("id", pyarrow.int64()), ("city", "string")]),
            evolve=False,
        )


def test_a_move_that_was_cut_short_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = TableTarget(str(tmp_path / "orders"), format="parquet")
    store: Store = store_of(target)
    monkeypatch.setattr(type(store), "_move", lambda self, files: None)
    append(target, orders((1, "tea", 2.5)), Mark("query", 0))
    monkeypatch.undo()
    assert [row["id"] for row in rows_of(target)] == [1]


def test_options_and_back() -> None:
    target = TableTarget("t", "iceberg", "upsert", ("a", "b"), ("c",), "d", False)
    assert target_of(target.as_options()) == target


@pytest.mark.parametrize(
    "options, message",
    [
        ({}, "The option path is missing"),
        ({"path": "t", "format": "orc"}, "one of delta, iceberg, parquet"),
        ({"path": "t", "mode": "merge"}, "one of append, upsert"),
        ({"path": "t", "mode": "upsert"}, "needs a key"),
    ],
)
def test_wrong_options_are_reported(options: dict[str, str], message: str) -> None:
    with pytest.raises(TableError, match=message):
        target_of(options)
