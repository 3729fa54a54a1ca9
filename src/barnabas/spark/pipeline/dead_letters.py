"""Quarantined rows as records of the dead letter topic, with the error and the origin in headers.

A record that could not be decoded keeps its key, value and headers; a row that breaks a rule becomes JSON.
The headers are those of the data source (barnabas.error, barnabas.topic, ...) and barnabas.step, the
frame."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from barnabas.spark.dead_letter_headers import (
    ERROR_HEADER,
    OFFSET_HEADER,
    PARTITION_HEADER,
    PIPELINE_HEADER,
    STEP_HEADER,
    TOPIC_HEADER,
)

ORIGIN_HEADERS = {TOPIC_HEADER: "_topic", PARTITION_HEADER: "_partition", OFFSET_HEADER: "_offset"}


def undecodable(frame: DataFrame, pipeline: str, source: str) -> DataFrame:
    """Records of a source whose value could not be decoded: key, value, headers."""
    own = _headers(frame, pipeline, source)
    kept = F.coalesce(F.col("_headers"), F.array().cast("array<struct<key: string, value: binary>>"))
    bad = frame.filter(F.col("_error").isNotNull())
    return bad.select(
        F.col("_key").alias("key"), F.col("_value").alias("value"), F.concat(kept, own).alias("headers")
    )


def rejected(frame: DataFrame, pipeline: str, step: str) -> DataFrame:
    """Rows that break a rule, as JSON without the columns that begin with _: key, value, headers."""
    own = [name for name in frame.columns if not name.startswith("_")]
    key = F.col("_key") if "_key" in frame.columns else F.lit(None).cast("binary")
    return frame.select(
        key.alias("key"),
        F.to_json(F.struct(*own)).cast("binary").alias("value"),
        _headers(frame, pipeline, step).alias("headers"),
    )


def _headers(frame: DataFrame, pipeline: str, step: str) -> Column:
    named = {ERROR_HEADER: F.col("_error"), PIPELINE_HEADER: F.lit(pipeline), STEP_HEADER: F.lit(step)}
    for header, column in ORIGIN_HEADERS.items():
        if column in frame.columns:
            named[header] = F.col(column)
    return F.array(
        *[
            F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
            for name, value in named.items()
        ]
    )
