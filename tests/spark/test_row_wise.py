"""Frames that are read together have the same rows as each of them alone; others are not read together."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from barnabas.spark.row_wise import row_wise, together

ROWS = [(1, 10, "a"), (2, 0, "b"), (3, None, None), (4, 5, "d")]
Make = Callable[[DataFrame], DataFrame]


@pytest.fixture
def batch(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, "id long, size int, name string")


def rows_of_each(batch: DataFrame, frames: list[DataFrame]) -> list[list[tuple[object, ...]]]:
    described = [row_wise(frame, batch) for frame in frames]
    whole, parts = together(batch, [each for each in described if each is not None])
    assert len(parts) == len(frames), described
    rows = whole.collect()
    result = []
    for part in parts:
        own = [row for row in rows if part.mask is None or row[part.mask]]
        result.append([tuple(row[name] for name in part.columns.values()) for row in own])
    return result


def assert_same(batch: DataFrame, frames: list[DataFrame]) -> None:
    assert rows_of_each(batch, frames) == [[tuple(row) for row in frame.collect()] for frame in frames]


def test_columns_and_conditions(batch: DataFrame) -> None:
    large = batch.filter("size >= 5")
    assert_same(
        batch,
        [
            batch,
            batch.select("name", "id"),
            batch.selectExpr("id + 1 AS id", "upper(name) AS name"),
            large,
            large.selectExpr("id AS other", "coalesce(name, 'none') AS name").filter("other > 1"),
            batch.selectExpr("id * 2 AS twice").filter("twice > 4").selectExpr("twice + 1 AS more"),
            batch.filter("name IS NULL").select("id"),
        ],
    )


def test_columns_of_the_batch_are_read_once(batch: DataFrame) -> None:
    frames = [batch.selectExpr("id", "name", f"size + {number} AS size") for number in range(3)]
    whole, _ = together(batch, [each for frame in frames if (each := row_wise(frame, batch)) is not None])
    assert len(whole.columns) == 5


def test_rows_that_no_frame_has_are_not_read(batch: DataFrame) -> None:
    frames = [batch.filter("id = 1"), batch.filter("size > 7")]
    whole, _ = together(batch, [each for frame in frames if (each := row_wise(frame, batch)) is not None])
    assert whole.count() == 1


def test_what_would_fail_for_rows_of_others_is_not_computed_for_them(batch: DataFrame) -> None:
    """Spark raises an error for a division by zero."""
    divided = batch.filter("size <> 0").selectExpr("id", "100 div size AS share")
    assert_same(batch, [batch.select("id"), divided, divided.filter("share > 10")])


def test_one_frame_that_both_steps_use(spark: SparkSession, batch: DataFrame) -> None:
    batch.selectExpr("id", "size * 2 AS size").createOrReplaceTempView("doubled")
    assert_same(batch, [spark.sql(f"SELECT id, size + {number} AS size FROM doubled") for number in (1, 2)])


@pytest.mark.parametrize(
    "make",
    [
        lambda batch: batch.union(batch),
        lambda batch: batch.distinct(),
        lambda batch: batch.limit(1),
        lambda batch: batch.groupBy("id").count(),
        lambda batch: batch.withColumn("random", F.rand()),
        lambda batch: batch.select("id", F.explode(F.array("size", "id"))),
        lambda batch: batch.select("id", "id"),
        lambda batch: batch.select(F.udf(lambda number: number + 1, "long")("id").alias("id")),
        lambda batch: batch.sparkSession.range(3),
        lambda batch: batch.join(batch.sparkSession.range(3).withColumnRenamed("id", "n"), F.expr("n = id")),
    ],
    ids=["union", "distinct", "limit", "sum", "random", "explode", "twice", "udf", "other", "join"],
)
def test_other_frames_are_not_read_together(batch: DataFrame, make: Make) -> None:
    assert row_wise(make(batch), batch) is None


def test_a_kept_batch(batch: DataFrame) -> None:
    batch.persist()
    try:
        assert_same(batch, [batch.select("id"), batch.filter("size > 1").selectExpr("size + 1 AS size")])
    finally:
        batch.unpersist()
