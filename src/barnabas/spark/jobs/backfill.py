"""Writes a table, or a query on one, to a topic in one transaction. A run that was written is not written
again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from barnabas.ids import TopicPartition
from barnabas.spark.jobs.clients import JobError, admin_of, sink_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# The name of the table in SQL.
VIEW = "source"
JSON, COLUMNS, TEXT_PREFIX = "json", "columns", "text:"
RECORD_COLUMNS = ("key", "value", "headers", "partition", "timestamp")


@dataclass(frozen=True, slots=True)
class Backfill:
    """How rows become records. `value` is json (all columns), text:COLUMN, or columns if the rows already
    have the columns of records, RECORD_COLUMNS."""

    client: Mapping[str, str] = field(repr=False)
    topic: str
    run_id: str
    key: str | None = None
    value: str = JSON
    timestamp: str | None = None


class Sent(NamedTuple):
    """`was_done`: the run was written before, so nothing was written now."""

    rows: int
    was_done: bool


def rows_of(spark: "SparkSession", table: "DataFrame", sql: str | None) -> "DataFrame":
    """The table, or the result of a query in which the table is named `source`."""
    if sql is None:
        return table
    table.createOrReplaceTempView(VIEW)
    return spark.sql(sql)


def backfill(rows: "DataFrame", job: Backfill) -> Sent:
    """Send the rows to the topic in one transaction, unless a run with this id has done it before."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    if _was_done(job):
        return Sent(0, True)
    records = records_of(rows, job)
    seen = Observation("backfill")
    (
        records.observe(seen, f.count(f.lit(1)).alias("rows"))
        .write.format("barnabas")
        .mode("append")
        .options(**sink_options(job.client))
        .option("topic", job.topic)
        .option("delivery", "exactly-once")
        .option("transactional.id", transactional_id(job.run_id))
        .option("runId", job.run_id)
        .option("includeTimestamp", str("timestamp" in records.columns).lower())
        .save()
    )
    return Sent(int(seen.get["rows"]), False)


def transactional_id(run_id: str) -> str:
    return f"backfill-{run_id}"


def _was_done(job: Backfill) -> bool:
    """Saves work only: the sink decides in its transaction."""
    with admin_of(job.client) as admin:
        marker = admin.list_consumer_group_offsets(transactional_id(job.run_id), require_stable=True)
    return TopicPartition(job.topic, 0) in marker


def records_of(rows: "DataFrame", job: Backfill) -> "DataFrame":
    """The rows with the columns of records."""
    if job.value == COLUMNS:
        unknown = [name for name in rows.columns if name not in RECORD_COLUMNS]
        if unknown or "value" not in rows.columns:
            raise JobError(
                f"With columns as the value, rows must have a column value and no columns other than"
                f" {', '.join(RECORD_COLUMNS)}, but they have {', '.join(rows.columns)}. Rename them in SQL."
            )
        return rows
    columns = [_value(rows, job.value).alias("value")]
    if job.key is not None:
        columns.append(_text(rows, job.key).alias("key"))
    if job.timestamp is not None:
        columns.append(_column(rows, job.timestamp).cast("timestamp").alias("timestamp"))
    return rows.select(*columns)


def _value(rows: "DataFrame", value: str) -> "Column":
    from pyspark.sql import functions as f

    if value == JSON:
        # Null fields are written as null, as in the table.
        return f.to_json(f.struct(*(rows[name] for name in rows.columns)), {"ignoreNullFields": "false"})
    if value.startswith(TEXT_PREFIX):
        return _text(rows, value.removeprefix(TEXT_PREFIX))
    raise JobError(f"The value must be json, text:COLUMN or columns, not {value!r}.")


def _text(rows: "DataFrame", name: str) -> "Column":
    """Binary columns as they are, all others as text."""
    kind = dict(rows.dtypes).get(name)
    column = _column(rows, name)
    return column if kind in ("binary", "string") else column.cast("string")


def _column(rows: "DataFrame", name: str) -> "Column":
    if name not in rows.columns:
        near = get_close_matches(name, rows.columns, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; the columns are {', '.join(rows.columns)}."
        raise JobError(f"There is no column {name}{hint}")
    return rows[name]
