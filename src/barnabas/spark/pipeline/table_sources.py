"""Tables that steps may use, as DataFrames: a stream can be joined with them."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from barnabas.spark.pipeline.definition import path_in
from barnabas.spark.tables.origin import JDBC, TableOrigin
from barnabas.spark.tables.writing import FORMAT


def table_frame(spark: SparkSession, origin: TableOrigin, directory: Path) -> DataFrame:
    """A table of the pipeline; a relative path begins at the directory of its file."""
    if origin.url.startswith(JDBC):
        chosen = {"query": origin.query} if origin.query else {"dbtable": origin.table}
        return spark.read.format("jdbc").options(url=origin.url, **chosen).load()
    options = origin.as_options()
    if origin.path and not origin.catalog:
        options["path"] = path_in(directory, origin.path)
    reader = spark.read.format(FORMAT).options(**options)
    return (reader if origin.schema is None else reader.schema(origin.schema)).load()
