"""Where Spark looks for data sources by itself: a module named pyspark_* that exports DefaultSource.

A module that fails to import would hide every other source too, so this one never does: without a PySpark
that has data sources there is simply no source here."""

from importlib.util import find_spec

__all__: list[str] = []

if find_spec("pyspark") is not None and find_spec("pyspark.sql.datasource") is not None:
    from barnabas.spark.source import BarnabasSource as DefaultSource

    __all__ += ["DefaultSource"]
