"""Quality rules as Spark conditions: which rows pass, which are quarantined, and why."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from barnabas.spark.pipeline.definition import Rule


def holds(rule: Rule) -> Column:
    """Whether a row fulfils a rule; if the result is null, it does not."""
    return F.coalesce(F.expr(rule.check), F.lit(False))


def passing(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The rows that fulfil all rules. A broken rule with action fail ends the query with an error."""
    for rule in rules:
        if rule.action == "fail":
            error = F.raise_error(F.lit(f"A row breaks the rule '{rule.name}': {rule.check}"))
            frame = frame.filter(F.when(holds(rule), F.lit(True)).otherwise(error.cast("boolean")))
        else:
            frame = frame.filter(holds(rule))
    return frame


def quarantined(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The quarantined rows, with `_error`: the names of the rules that they break.

    A row that is dropped by another rule is not quarantined."""
    quarantining = [rule for rule in rules if rule.action == "quarantine"]
    dropping = [holds(rule) for rule in rules if rule.action == "drop"]
    broken = [F.when(~holds(rule), F.lit(rule.name)) for rule in quarantining]
    kept = reduce(lambda one, other: one & other, dropping, F.lit(True))
    checked = frame.filter(kept).withColumn("_error", F.concat_ws(", ", *broken))
    return checked.filter(F.col("_error") != "")
