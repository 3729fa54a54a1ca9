"""Faults of a log that show between a batch and the one before it.

Spark sorts the rows of a partition, so a batch is also compared with the one before it if another task has
read that."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

LOG = ("place", "topic", "partition")
FINDING = (*LOG, "check", "offset", "amount", "detail", "is_wrong")
# Name, condition, how many records or offsets are affected, the text after that number, and whether it is a
# fault.
CHECKS = (
    ("gap", "missing > 0 AND NOT is_cleaned", "missing", "' offsets are missing here'"),
    (
        "order",
        "previous_offset >= base_offset",
        "1",
        "' batch begins before the end of the previous one, offset ', previous_offset",
    ),
    (
        "epoch",
        "leader_epoch >= 0 AND previous_epoch > leader_epoch",
        "1",
        "' batch of leader epoch ', leader_epoch, ' follows one of ', previous_epoch",
    ),
    (
        "repeated",
        "repeated > 0",
        "repeated",
        "' records of producer ', producer_id, ' were already written, from sequence ', base_sequence",
    ),
    (
        "sequence",
        "skipped > 0",
        "skipped",
        "' sequences of producer ', producer_id, ' are missing before ', base_sequence",
    ),
    ("time", "older > 0", "older", "' records are older than the records before them'", "false"),
)
# After the last sequence comes 0 again.
_SEQUENCES = 1 << 31


def with_neighbours(rows: DataFrame) -> DataFrame:
    """The batches of `rows`, each compared with the one before it: what is missing, repeated or out of
    order."""
    log = Window.partitionBy(*LOG).orderBy("part", "number")
    before = log.rowsBetween(Window.unboundedPreceding, -1)
    producer = Window.partitionBy(
        *LOG, "producer_id", "producer_epoch", f.expr("base_sequence >= 0 AND NOT is_marker")
    ).orderBy("part", "number")
    return (
        rows.where("check IS NULL")
        .withColumn("first_offset", f.expr("greatest(base_offset, begins_at)"))
        .withColumn("previous_offset", f.lag("last_offset").over(log))
        .withColumn("previous_epoch", f.lag("leader_epoch").over(log))
        # Markers have no timestamp.
        .withColumn("previous_timestamp", f.last("last_timestamp", ignorenulls=True).over(before))
        .withColumn("previous_sequence", f.lag("last_sequence").over(producer))
        .withColumn("is_cleaned", f.expr("base_offset < cleaned_to"))
        .withColumn("missing", f.expr("greatest(0, first_offset - coalesce(previous_offset + 1, begins_at))"))
        .withColumn(
            "holes", f.expr("last_offset - first_offset + 1 - if(is_marker, 1, records)").cast("bigint")
        )
        .withColumn("older", f.expr("backwards + if(first_timestamp < previous_timestamp, 1, 0)"))
        .withColumn("step", _step())
        .withColumn("skipped", f.expr(f"if(step < {_SEQUENCES // 2} AND NOT is_cleaned, step, 0)"))
        .withColumn(
            "repeated",
            f.expr(f"if(step >= {_SEQUENCES // 2}, least({_SEQUENCES} - step, records), 0)"),
        )
    )


def _step() -> Column:
    """How far the first sequence of a batch is from the expected one; 0 if that is not known."""
    return f.expr(
        "CASE WHEN is_marker OR producer_id < 0 OR base_sequence < 0 OR previous_sequence IS NULL THEN 0"
        f" ELSE pmod(base_sequence - previous_sequence - 1, {_SEQUENCES}) END"
    ).cast("bigint")


def summaries(batches: DataFrame) -> DataFrame:
    """One row for each partition that has batches."""
    return batches.groupBy(*LOG).agg(
        f.expr("min(first_offset) AS first"),
        f.expr("max(last_offset) AS last"),
        f.expr("count(*) AS batches"),
        f.expr("sum(bytes) AS bytes"),
        f.expr("sum(records) AS records"),
        f.expr("count_if(is_marker) AS markers"),
        f.expr("sum(holes + if(is_cleaned, missing, 0)) AS compacted"),
        f.expr("sum(if(is_cleaned, 0, missing)) AS missing"),
        f.expr("sum(repeated) AS repeated"),
        f.expr("sum(older) AS backwards"),
    )


def findings(rows: DataFrame, batches: DataFrame) -> DataFrame:
    """All findings from batches, with the columns FINDING."""
    of_bytes = rows.where("check IS NOT NULL").selectExpr(
        *LOG, "check", "base_offset AS offset", "1L AS amount", "detail", "true AS is_wrong"
    )
    # One array for each batch, so that Spark sorts the batches once and not for each check.
    results = f"array({', '.join(_result(*each) for each in CHECKS)})"
    of_batches = batches.selectExpr(
        *LOG, "base_offset AS offset", f"explode(filter({results}, each -> each.holds)) AS result"
    ).selectExpr(*LOG, "result.check", "offset", "result.amount", "result.detail", "result.is_wrong")
    return of_bytes.unionByName(of_batches)


def _result(check: str, condition: str, amount: str, words: str, is_wrong: str = "true") -> str:
    return (
        f"named_struct('check', '{check}', 'holds', coalesce({condition}, false),"
        f" 'amount', cast({amount} AS bigint), 'detail', concat_ws('', {amount}, {words}),"
        f" 'is_wrong', {is_wrong})"
    )
