"""What is wrong with a log, told from the rows of its batches: what lies between neighbours.

Spark sorts the rows of a partition, so that a batch meets the one before it also where another task has
read that."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

LOG = ("place", "topic", "partition")
FINDING = (*LOG, "check", "offset", "amount", "detail", "is_wrong")
# Name, condition, how many it is about, the words behind that number, and whether it is wrong.
CHECKS = (
    ("gap", "missing > 0 AND NOT is_cleaned", "missing", "' offsets are missing here'"),
    (
        "order",
        "previous_offset >= base_offset",
        "1",
        "' batch begins before the one in front of it ends, with offset ', previous_offset",
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
        "' records of producer ', producer_id, ' were written before, from sequence ', base_sequence",
    ),
    (
        "sequence",
        "skipped > 0",
        "skipped",
        "' sequences of producer ', producer_id, ' are missing before ', base_sequence",
    ),
    ("time", "older > 0", "older", "' records are older than those before'", "false"),
)
# Sequences go from here back to 0.
_SEQUENCES = 1 << 31


def with_neighbours(rows: DataFrame) -> DataFrame:
    """The batches of `rows` with what they lack, repeat or put out of order against the one before them."""
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
        # Markers have no time of their own.
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
    """How far a batch's first sequence is from the one that was due; 0 where nothing is known."""
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
    """Everything that can be told from batches, in the columns FINDING."""
    of_bytes = rows.where("check IS NOT NULL").selectExpr(
        *LOG, "check", "base_offset AS offset", "1L AS amount", "detail", "true AS is_wrong"
    )
    # One array for each batch, so that Spark sorts them once and not for each check.
    told = f"array({', '.join(_told(*each) for each in CHECKS)})"
    of_batches = batches.selectExpr(
        *LOG, "base_offset AS offset", f"explode(filter({told}, each -> each.holds)) AS told"
    ).selectExpr(*LOG, "told.check", "offset", "told.amount", "told.detail", "told.is_wrong")
    return of_bytes.unionByName(of_batches)


def _told(check: str, condition: str, amount: str, words: str, is_wrong: str = "true") -> str:
    return (
        f"named_struct('check', '{check}', 'holds', coalesce({condition}, false),"
        f" 'amount', cast({amount} AS bigint), 'detail', concat_ws('', {amount}, {words}),"
        f" 'is_wrong', {is_wrong})"
    )
