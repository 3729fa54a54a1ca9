"""The data source as Spark finds it: format `barnabas`. Fast to import: readers and writers are imported when
they are needed."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class BarnabasSource(DataSource):
    """Topics as DataFrames. Options: docs/spark-options.md."""

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def schema(self) -> "StructType":
        from barnabas.spark.columns import default_schema

        return default_schema(self.options)

    def reader(self, schema: "StructType") -> DataSourceReader:
        from barnabas.spark.columns import check_schema
        from barnabas.spark.reader import PushdownReader, TopicReader
        from barnabas.spark.settings import read_settings

        settings = read_settings(self.options, is_stream=False)
        check_schema(settings, schema)
        kind = PushdownReader if settings["pushFilters"] else TopicReader
        return kind(settings, schema)

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        from barnabas.spark.columns import check_schema
        from barnabas.spark.settings import read_settings
        from barnabas.spark.stream import RangeStreamReader, TopicStreamReader

        settings = read_settings(self.options, is_stream=True)
        check_schema(settings, schema)
        kind = RangeStreamReader if settings["rangesOnly"] else TopicStreamReader
        return kind(settings, schema)

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceWriter:
        from barnabas.spark.sink.writers import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> DataSourceStreamWriter:
        from barnabas.spark.sink.writers import stream_writer

        return stream_writer(self.options, schema)
