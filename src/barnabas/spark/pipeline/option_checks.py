"""Checks of options, schemas and columns, without Spark or brokers: what a query would refuse when it
starts."""

from collections.abc import Iterator, Mapping

from barnabas.spark.options import OptionError
from barnabas.spark.pipeline.column_lists import SchemaMistake, columns_in
from barnabas.spark.pipeline.definition import FunctionSink, Pipeline, Sink, Source, TableSink, TopicSink
from barnabas.spark.pipeline.options import sink_options, source_options
from barnabas.spark.pipeline.problems import meant
from barnabas.spark.settings import read_settings
from barnabas.spark.sink.settings import write_settings
from barnabas.spark.tables.target import DELETED

# The columns of a row that was not decoded, and those that a decoded row has in addition.
RECORD_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
ORIGIN_COLUMNS = ("_topic", "_partition", "_offset", "_timestamp")


def source_problems(name: str, source: Source, pipeline: Pipeline) -> Iterator[str]:
    """Options that the data source refuses, a schema that cannot be read, and columns that do not exist."""
    try:
        read_settings(source_options(pipeline, source, pipeline.group_of("check")), is_stream=True)
    except OptionError as error:
        yield f"Source {name}: {error}"
    try:
        columns = source_columns(source)
    except SchemaMistake as mistake:
        place = "" if source.schema_file is None else f" in {source.schema_file}"
        yield f"The schema of source {name}{place} {mistake}"
        return
    used = [*source.dedupe, *(() if source.watermark is None else (source.watermark.column,))]
    for column in used:
        if columns is not None and column not in columns:
            yield f"Source {name} has no column {column}; {meant(column, columns)}"


def source_columns(source: Source) -> tuple[str, ...] | None:
    """The columns of a source; None if only its schema in a registry or in another language has them."""
    if source.decode in ("none", "text"):
        return RECORD_COLUMNS
    if source.decode not in ("json", "csv") or source.schema is None:
        return None
    deleted = () if source.envelope == "none" else (DELETED,)
    return (*columns_in(source.schema), *deleted, *ORIGIN_COLUMNS)


def sink_problems(sink: Sink, pipeline: Pipeline) -> Iterator[str]:
    """Options that the sink refuses, and columns that do not exist, if it writes a source without a step."""
    if isinstance(sink, TopicSink):
        try:
            write_settings(sink_options(pipeline, sink), is_stream=True)
        except OptionError as error:
            yield f"The sink {sink.name}: {error}"
    if sink.source in pipeline.sources:
        try:
            columns = source_columns(pipeline.sources[sink.source])
        except SchemaMistake:
            # It is reported for the source.
            return
        if columns is not None:
            yield from column_problems(sink, columns)


def column_problems(sink: Sink, columns: tuple[str, ...]) -> Iterator[str]:
    """Columns that a sink uses and its rows do not have."""
    for field, names in _used_columns(sink).items():
        for name in names:
            if name not in columns:
                yield (
                    f"{field} of the sink {sink.name} is the column {name}, which {sink.source} does not"
                    f" have; {meant(name, columns)}"
                )


def _used_columns(sink: Sink) -> Mapping[str, tuple[str, ...]]:
    if isinstance(sink, TopicSink):
        return {"key": () if sink.key is None else (sink.key,)}
    if isinstance(sink, FunctionSink):
        return {}
    order = () if sink.order_by is None else (sink.order_by,)
    used = {"key": sink.key, "order_by": order}
    if isinstance(sink, TableSink):
        used["partition_by"] = sink.partition_by
        used["path"] = () if sink.column is None else (sink.column,)
    return used
