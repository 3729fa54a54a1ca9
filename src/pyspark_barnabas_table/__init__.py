"""Where Spark looks for data sources by itself: the sink into tables, `barnabas_table`.

As pyspark_barnabas: an import that fails would hide every other source, so this one never does."""

from importlib.util import find_spec

__all__: list[str] = []

if find_spec("pyspark") is not None and find_spec("pyspark.sql.datasource") is not None:
    from barnabas.spark.tables.sink import TableSource as DefaultSource

    __all__ += ["DefaultSource"]
