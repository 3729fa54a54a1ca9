"""Streams to tables on a real Spark: appended by tasks, upserted on the driver, and replayed without
repeats."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.running import run_to_its_end
from tests.spark.writing import append_to_table

from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.spark.tables.writing import write_stream

NOW = {"availableNow": True}


@pytest.fixture
def run(spark: SparkSession, topics: Any, topic: str, broker: Any, tmp_path: Path) -> Callable[..., None]:
    """run(target, "id value", ...) sends records and brings the table up to date."""

    def run(target: TableTarget, *values: str) -> None:
        topics.put(topic, [value.encode() for value in values])
        frame = (
            spark.readStream.format("barnabas")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
            .selectExpr(
                "cast(split(cast(value as string), ' ')[0] as int) as id",
                "split(cast(value as string), ' ')[1] as what",
                "offset",
                "cast(value as string) like '% gone' as _deleted",
            )
        )
        if target.mode == "append":
            frame = frame.drop("_deleted", "offset")
        checkpoint = str(tmp_path / "checkpoint")
        run_to_its_end(lambda: write_stream(frame, target, checkpoint, "query", NOW))

    return run


@pytest.mark.parametrize("format_", ["delta", "iceberg", "parquet"])
def test_appended_once_also_when_a_batch_is_replayed(
    run: Callable[..., None], tmp_path: Path, format_: str
) -> None:
    target = TableTarget(str(tmp_path / "rows"), format=format_, partition_by=("what",))
    run(target, "1 tea", "2 coffee")
    run(target, "3 tea")
    assert store_of(target).count() == 3
    # Spark does not know that the last batch was committed, as if it were killed before it could store that.
    commits = tmp_path / "checkpoint" / "commits"
    newest = max(
        (path for path in commits.iterdir() if path.name.isdecimal()), key=lambda path: int(path.name)
    )
    newest.unlink()
    (commits / f".{newest.name}.crc").unlink(missing_ok=True)
    run(target, "4 tea")
    rows = store_of(target).read().to_pylist()
    assert sorted(row["id"] for row in rows) == [1, 2, 3, 4]


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_upserted(run: Callable[..., None], tmp_path: Path, format_: str) -> None:
    target = TableTarget(
        str(tmp_path / "rows"), format=format_, mode="upsert", key=("id",), order_by="offset"
    )
    run(target, "1 tea", "2 coffee", "1 water")
    run(target, "2 gone", "3 milk")
    rows = store_of(target).read().to_pylist()
    assert sorted((row["id"], row["what"]) for row in rows) == [(1, "water"), (3, "milk")]


def test_a_query_with_a_new_checkpoint_is_not_taken_for_the_old_one(
    run: Callable[..., None], tmp_path: Path
) -> None:
    target = TableTarget(str(tmp_path / "rows"), mode="upsert", key=("id",), order_by="offset")
    run(target, "1 tea")
    shutil.rmtree(tmp_path / "checkpoint")
    run(target, "2 tea")
    assert store_of(target).count() == 2


def test_a_batch_job(spark: SparkSession, tmp_path: Path) -> None:
    target = TableTarget(str(tmp_path / "rows"))
    for _ in range(2):
        append_to_table(spark.range(10), target)
    assert store_of(target).count() == 20
