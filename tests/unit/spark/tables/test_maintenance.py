"""Maintenance of tables of each format: nothing that a reader or a query needs is lost, even while a query
writes."""

import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pyarrow
import pytest
from tests.unit.spark.tables.filling import append, orders, rows_of, upsert, written

from barnabas.spark.tables.iceberg_catalogs import path_of
from barnabas.spark.tables.maintenance import sweep
from barnabas.spark.tables.store import append as append_files
from barnabas.spark.tables.store import maintain, store_of
from barnabas.spark.tables.target import Conflict, Mark, TableError, TableTarget

FORMATS = ("delta", "iceberg", "parquet")
# Libraries give warnings, and the garbage collector closes connections to SQLite.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(params=FORMATS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> TableTarget:
    return TableTarget(str(tmp_path / "orders"), format=request.param)


def fill(target: TableTarget, batches: int) -> None:
    for batch in range(batches):
        append(target, orders((batch, "tea", 2.5)), Mark("query", batch))


def data_files(target: TableTarget) -> list[Path]:
    return list(Path(target.path).rglob("*.parquet"))


def test_rows_and_marks_stay(target: TableTarget) -> None:
    fill(target, 4)
    for _ in range(2):
        maintain(target, keep_days=0)
        assert [row["id"] for row in rows_of(target)] == [0, 1, 2, 3]
        assert store_of(target).last_batch("query") == 3
    # A batch that Spark repeats is recognized; the next one is new.
    fill(target, 5)
    assert [row["id"] for row in rows_of(target)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
@pytest.mark.parametrize("partition_by", [(), ("category",)])
def test_small_files_are_joined(tmp_path: Path, format_: str, partition_by: tuple[str, ...]) -> None:
    target = TableTarget(str(tmp_path / "orders"), format=format_, partition_by=partition_by)
    for batch in range(4):
        append(target, orders((batch, "tea", 2.5), (10 + batch, "a/b", 1.0)), Mark("query", batch))
    done = maintain(target, keep_days=0)
    partitions = 2 if partition_by else 1
    assert (done.files_before, done.files_after) == (4 * partitions, partitions)
    assert sorted(str(row["id"]) for row in rows_of(target)) == ["0", "1", "10", "11", "12", "13", "2", "3"]
    assert {row["category"] for row in rows_of(target)} == {"tea", "a/b"}
    assert done.files_swept >= 4 * partitions
    assert len([path for path in data_files(target) if "_delta_log" not in path.parts]) == partitions
    # There is nothing more to join.
    again = maintain(target, keep_days=0)
    assert (again.files_before, again.files_after) == (partitions, partitions)


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_files_from_before_a_column_was_added_are_joined_with_later_ones(
    tmp_path: Path, format_: str
) -> None:
    target = TableTarget(str(tmp_path / "orders"), format=format_)
    append(target, orders((1, "tea", 2.5)), Mark("query", 0))
    wider = orders((2, "tea", 2.5)).append_column("city", pyarrow.array(["Graz"]))
    append(target, wider, Mark("query", 1))
    assert maintain(target, keep_days=0).files_after == 1
    assert [row["city"] for row in rows_of(target)] == [None, "Graz"]


def test_young_files_and_snapshots_stay(target: TableTarget) -> None:
    fill(target, 3)
    before = set(data_files(target))
    done = maintain(target, keep_days=1)
    assert done.files_swept == 0
    assert before <= set(data_files(target))


@pytest.mark.parametrize("format_", ["iceberg", "parquet"])
def test_old_batches_are_removed_from_the_metadata(tmp_path: Path, format_: str) -> None:
    target = TableTarget(str(tmp_path / "orders"), format=format_)
    fill(target, 5)
    done = maintain(target, keep_days=0)
    assert done.snapshots_removed >= 4
    assert done.bytes_after < done.bytes_before


def test_old_files_that_are_in_no_commit_are_removed(target: TableTarget) -> None:
    # The second batch comes twice: its files are unused.
    for _ in range(2):
        append(target, orders((1, "tea", 2.5)), Mark("query", 0))
    maintain(target, keep_days=1)
    assert len(list(Path(target.path).rglob("part-*.parquet"))) == 2
    assert maintain(target, keep_days=0).files_swept >= 1
    assert len(list(Path(target.path).rglob("part-*.parquet"))) == 1
    assert store_of(target).count() == 1


def test_a_table_that_was_written_by_way_of_a_link(target: TableTarget, tmp_path: Path) -> None:
    (tmp_path / "really").mkdir()
    (tmp_path / "link").symlink_to("really")
    written = TableTarget(str(tmp_path / "link" / "orders"), format=target.format)
    fill(written, 3)
    really = TableTarget(str(tmp_path / "really" / "orders"), format=target.format)
    for place in (really, written):
        maintain(place, keep_days=0)
        assert [row["id"] for row in rows_of(place)] == [0, 1, 2]


def test_no_files_of_a_copied_iceberg_table_are_removed(tmp_path: Path) -> None:
    fill(TableTarget(str(tmp_path / "first" / "orders"), format="iceberg"), 3)
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    copy = TableTarget(str(tmp_path / "copy" / "orders"), format="iceberg")
    before = data_files(copy)
    with pytest.raises(TableError, match=r"says that it is at .*first/orders: it was copied or moved"):
        maintain(copy, keep_days=0)
    assert data_files(copy) == before


def test_files_that_java_names_in_another_way_are_not_removed() -> None:
    assert path_of("file:/data/orders/a%20b.parquet") == path_of("file:///data/orders/a%20b.parquet")
    assert path_of("file:/data/orders") == path_of("/data/orders") == "/data/orders"
    assert path_of("s3://bucket/orders") == "s3://bucket/orders"


def test_there_is_no_table_yet(target: TableTarget) -> None:
    with pytest.raises(TableError, match=f"There is no {target.format} table at .* run the pipeline first"):
        maintain(target, keep_days=7)


def maintain_until(done: threading.Event, target: TableTarget, failed: list[BaseException]) -> None:
    try:
        while not done.is_set():
            # These batches are so fast that maintenance may never be the first to change the table.
            with suppress(Conflict):
                maintain(target, keep_days=1)
    except BaseException as error:
        failed.append(error)
        raise


def while_maintained(target: TableTarget, batches: int, write: "Write") -> None:
    """Write batches while another thread maintains the table all the time."""
    write(0)
    done, failed = threading.Event(), list[BaseException]()
    other = threading.Thread(target=maintain_until, args=(done, target, failed))
    other.start()
    try:
        for batch in range(1, batches):
            write(batch)
    finally:
        done.set()
        other.join()
    assert not failed
    maintain(target, keep_days=0)


class Write:
    """Batches of a query, by their numbers."""

    def __init__(self, target: TableTarget) -> None:
        self._target = target

    def __call__(self, batch: int) -> None:
        append(self._target, orders((batch, "tea", 2.5)), Mark("query", batch))


class Upsert(Write):
    def __call__(self, batch: int) -> None:
        rows = orders((batch, "tea", 2.5), (-1, "last", float(batch)))
        upsert(self._target, rows, Mark("query", batch))


def test_a_table_is_maintained_while_a_query_appends(target: TableTarget) -> None:
    while_maintained(target, 12, Write(target))
    assert sorted(int(str(row["id"])) for row in rows_of(target)) == list(range(12))


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_table_is_maintained_while_a_query_upserts(tmp_path: Path, format_: str) -> None:
    target = TableTarget(str(tmp_path / "orders"), format=format_, mode="upsert", key=("id",))
    while_maintained(target, 8, Upsert(target))
    amounts = {row["id"]: row["amount"] for row in rows_of(target)}
    assert amounts == {-1: 7.0} | dict.fromkeys(range(8), 2.5)
    assert len(rows_of(target)) == 9


def test_a_file_that_a_commit_moves_while_unused_ones_are_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "staged.parquet").touch()
    is_file = Path.is_file

    def moved_after_a_look(path: Path) -> bool:
        found = is_file(path)
        path.rename(tmp_path / "moved")
        return found

    monkeypatch.setattr(Path, "is_file", moved_after_a_look)
    assert sweep(tmp_path, "*.parquet", [], keep_days=0) == 0
    assert (tmp_path / "moved").exists()


def test_two_drivers_that_commit_the_same_batch_at_once(target: TableTarget) -> None:
    """One driver seemed to be dead, and another has replaced it."""
    failed: list[BaseException] = []

    def commit(batch: int, meeting: threading.Barrier) -> None:
        try:
            files = written(target, orders((batch, "tea", 2.5)))
            meeting.wait(30)
            append_files(store_of(target), files, Mark("query", batch))
        except BaseException as error:
            failed.append(error)
            raise

    append(target, orders((0, "tea", 2.5)), Mark("query", 0))
    for batch in range(1, 8):
        meeting = threading.Barrier(2)
        drivers = [threading.Thread(target=commit, args=(batch, meeting)) for _ in range(2)]
        for driver in drivers:
            driver.start()
        for driver in drivers:
            driver.join()
    assert not failed
    assert [row["id"] for row in rows_of(target)] == list(range(8))
