"""Rules of quality as conditions of Spark: which rows go on, which are put aside, and why."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from barnabas.spark.pipeline.definition import Rule


def holds(rule: Rule) -> Column:
    """Whether a rule holds; where SQL cannot say, because of a null, it does not."""
    return F.coalesce(F.expr(rule.check), F.lit(False))


def passing(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The rows of which all rules hold. A rule that must not fail ends the query with its name."""
    for rule in rules:
        if rule.action == "fail":
            told = F.raise_error(F.lit(f"A row breaks the rule '{rule.name}': {rule.check}"))
            frame = frame.filter(F.when(holds(rule), F.lit(True)).otherwise(told.cast("boolean")))
        else:
            frame = frame.filter(holds(rule))
    return frame


def quarantined(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The rows that are put aside, with `_error`: the names of the rules they break.

    A row that is to be dropped anyway is not put aside."""
    aside = [rule for rule in rules if rule.action == "quarantine"]
    dropped = [holds(rule) for rule in rules if rule.action == "drop"]
    broken = [F.when(~holds(rule), F.lit(rule.name)) for rule in aside]
    kept = reduce(lambda one, other: one & other, dropped, F.lit(True))
    judged = frame.filter(kept).withColumn("_error", F.concat_ws(", ", *broken))
    return judged.filter(F.col("_error") != "")
