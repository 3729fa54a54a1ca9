"""Checks of single records: the same record twice, and keys whose records are out of order."""

import re

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from barnabas.spark.jobs.batch_checks import LOG
from barnabas.spark.jobs.clients import JobError

HEADER_PREFIX = "header:"
_PATH = re.compile(r"\$?\.?[\w\-]+(?:\.[\w\-]+|\[\d+\])*")


def repeats(records: DataFrame) -> DataFrame:
    """Records with the same key and value as one before them, in any partition of the topic."""
    same = ("place", "topic", "key_hash", "value_hash")
    return (
        records.selectExpr(*LOG, "offset", *(_hash(name) for name in ("key", "value")))
        .groupBy(*same)
        .agg(
            f.expr("count(*) AS copies"),
            f.expr("min(named_struct('partition', partition, 'offset', offset)) AS one"),
            f.expr("max(named_struct('partition', partition, 'offset', offset)) AS another"),
        )
        .where("copies > 1")
        .selectExpr(
            "place",
            "topic",
            "one.partition AS partition",
            "'duplicate' AS check",
            "one.offset AS offset",
            "copies - 1 AS amount",
            "concat('the same key and value occur ', copies, ' times, also at offset ', another.offset,"
            " ' of partition ', another.partition) AS detail",
            "true AS is_wrong",
        )
    )


def _hash(name: str) -> str:
    return f"if({name} IS NULL, NULL, md5({name})) AS {name}_hash"


def disorder(records: DataFrame, field: str) -> DataFrame:
    """Records whose number is not greater than that of the previous record with the same key."""
    before = Window.partitionBy(*LOG, "key").orderBy("offset")
    numbered = (
        records.where("key IS NOT NULL")
        .select(*LOG, "offset", "key", _number(field).alias("number"))
        .withColumn("previous", f.lag("number").over(before))
    )
    return (
        numbered.where("number IS NULL OR number <= previous")
        .withColumn("text", f.expr("decode(key, 'UTF-8')"))
        .selectExpr(
            *LOG,
            "if(number IS NULL, 'no-number', 'key-order') AS check",
            "offset",
            "1L AS amount",
            f"if(number IS NULL, {_literal(f'there is no number at {field}')},"
            " concat('key ', text, ': ', cast(cast(number AS double) AS string), ' follows ',"
            " cast(cast(previous AS double) AS string))) AS detail",
            "number IS NOT NULL AS is_wrong",
        )
    )


def _number(field: str) -> Column:
    """The number of a record as a decimal, from a header or a path in its JSON."""
    if field.startswith(HEADER_PREFIX):
        name = _literal(field.removeprefix(HEADER_PREFIX))
        text = f"decode(try_element_at(filter(headers, each -> each.key = {name}), -1).value, 'UTF-8')"
    else:
        if not _PATH.fullmatch(field):
            raise JobError(f"{field!r} must be a path such as $.order.version, or header:NAME.")
        path = field if field.startswith("$") else f"$.{field.lstrip('.')}"
        text = f"get_json_object(decode(value, 'UTF-8'), {_literal(path)})"
    return f.expr(f"try_cast({text} AS decimal(38, 9))")


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
