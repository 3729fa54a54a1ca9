"""Upserts by MERGE INTO, in sessions that have the Spark extension of a table format.

The mark of the batch is part of the same commit: for Delta as the transaction of an application, for Iceberg
as a property of the snapshot."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from barnabas.spark.tables.fitting import Fitting
from barnabas.spark.tables.target import DELETED, Mark, TableTarget
from barnabas.spark.tables.upsert_tasks import newest_rows
from barnabas.spark.tables.upserting import Upsert

EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
# The catalog of Spark that must lead to the catalog of our Iceberg tables.
ICEBERG_CATALOG = "barnabas"
VIEW = "barnabas_upsert"
# The settings of a session apply to all its statements, so one upsert must not see those of another.
_one_at_a_time = threading.Lock()


def merge_name(setting: Callable[[str], str], target: TableTarget) -> str | None:
    """The name of the table in SQL if a session with these settings can merge into it, else None."""
    extensions = setting("spark.sql.extensions").split(",")
    if EXTENSIONS[target.format] not in [name.strip() for name in extensions]:
        return None
    if target.format == "delta":
        return f"delta.{quoted(target.path)}"
    if target.catalog or not setting(f"spark.sql.catalog.{ICEBERG_CATALOG}"):
        return None
    name = target.path.rstrip("/").rpartition("/")[2]
    return f"{ICEBERG_CATALOG}.{ICEBERG_CATALOG}.{quoted(name)}"


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def merge_statements(name: str, target: TableTarget, fitting: Fitting) -> list[str]:
    """The view has the columns of the table, and DELETED. Null equals null."""
    columns = [quoted(column.target) for column in fitting.columns]
    same = " AND ".join(f"target.{quoted(part)} <=> source.{quoted(part)}" for part in target.key)
    updated = ", ".join(f"target.{column} = source.{column}" for column in columns)
    inserted = ", ".join(f"source.{column}" for column in columns)
    merge = (
        f"MERGE INTO {name} AS target USING {VIEW} AS source ON {same}"
        f" WHEN MATCHED AND source.{DELETED} THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {updated}"
        f" WHEN NOT MATCHED AND NOT source.{DELETED} THEN INSERT ({', '.join(columns)}) VALUES ({inserted})"
    )
    # The catalog of Iceberg in Spark keeps tables for a while: it does not know columns that were just added.
    return [f"REFRESH TABLE {name}", merge] if target.format == "iceberg" else [merge]


def mark_settings(format_: str, mark: Mark) -> dict[str, str]:
    """Settings of a session that put the mark into the next commit."""
    if format_ == "delta":
        return {
            "spark.databricks.delta.write.txnAppId": mark.query,
            "spark.databricks.delta.write.txnVersion": str(mark.batch),
        }
    return {f"spark.sql.iceberg.snapshot-property.{mark.property}": str(mark.batch)}


def upsert_by_merge(upsert: Upsert, frame: DataFrame, name: str) -> None:
    """A commit that conflicts with another one is tried again by the extension itself."""
    spark = frame.sparkSession
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    # A merge reads its source twice, and refuses one that could give other rows the second time.
    newest = newest_rows(frame, upsert, partitions).localCheckpoint()
    is_deleted: Any = F.lit(False)
    if DELETED in newest.columns:
        is_deleted = F.coalesce(F.col(DELETED), F.lit(False))
    own = [
        F.col(quoted(column.name)).cast(from_arrow_type(column.type)).alias(column.target)
        for column in upsert.fitting.columns
    ]
    with _one_at_a_time, _settings(spark, mark_settings(upsert.target.format, upsert.mark)):
        newest.select(*own, is_deleted.alias(DELETED)).createOrReplaceTempView(VIEW)
        for statement in merge_statements(name, upsert.target, upsert.fitting):
            spark.sql(statement)


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)
