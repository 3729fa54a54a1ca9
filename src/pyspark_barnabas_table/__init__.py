"""Here Spark finds the data source `barnabas_table`, the sink for tables.

Like pyspark_barnabas it never fails to import, because a failure would hide all other sources."""

from importlib.util import find_spec

__all__: list[str] = []

if find_spec("pyspark") is not None and find_spec("pyspark.sql.datasource") is not None:
    from barnabas.spark.tables.sink import TableSource as DefaultSource

    __all__ += ["DefaultSource"]
