"""Tables in an object store: a real S3 server that runs here."""

from collections.abc import Iterator

import pytest
from tests.unit.spark.tables.filling import append, orders, rows_of
from tests.unit.spark.tables.object_store import s3_bucket

from barnabas.spark.tables.origin import TableOrigin
from barnabas.spark.tables.reading import newest
from barnabas.spark.tables.store import maintain, store_of
from barnabas.spark.tables.target import Mark, TableTarget


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with s3_bucket(monkeypatch) as url:
        yield url


def test_a_delta_table(bucket: str) -> None:
    target = TableTarget(f"{bucket}/tables/orders", partition_by=("category",))
    append(target, orders((1, "tea", 1.0), (2, "milk", 2.0)), Mark("query", 0))
    append(target, orders((1, "tea", 1.0), (2, "milk", 2.0)), Mark("query", 0))
    append(target, orders((3, "tea", 3.0)), Mark("query", 1))
    assert [row["id"] for row in rows_of(target)] == [1, 2, 3]
    assert store_of(target).last_batch("query") == 1
    done = maintain(target, keep_days=0)
    assert (done.files_before, done.files_after) == (3, 2)
    assert [row["id"] for row in rows_of(target)] == [1, 2, 3]
    version = newest(TableOrigin(path=target.path))
    ids = [
        number
        for part in version.parts()
        for batch in version.read(part)
        for number in batch["id"].to_pylist()
    ]
    assert sorted(ids) == [1, 2, 3]
