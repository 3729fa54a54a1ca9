"""A step in Python: it gets DataFrames and returns one."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def enrich(spark: SparkSession, clean: DataFrame) -> DataFrame:
    """Add the tax of an order, and whether the order is large."""
    tax = F.when(F.col("category") == "books", 0.07).otherwise(0.19)
    return clean.withColumn("tax", F.round(F.col("amount") * tax, 2)).withColumn(
        "is_large", F.col("amount") >= 100
    )
