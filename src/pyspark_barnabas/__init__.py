"""Spark looks for data sources in modules named pyspark_* that export DefaultSource; this is ours.

A module that fails to import would hide all other sources, so this one never fails: if PySpark is missing or
too old for data sources, it exports nothing."""

from importlib.util import find_spec

__all__: list[str] = []

if find_spec("pyspark") is not None and find_spec("pyspark.sql.datasource") is not None:
    from barnabas.spark.source import BarnabasSource as DefaultSource

    __all__ += ["DefaultSource"]
