"""Sinks that need nothing of Spark but its batches: a table that gets the rows of a source as they are.

Their tasks read the topic and write the files of the table (tables/direct.py)."""

from pyspark.sql.types import StructType

from barnabas.spark.columns import default_schema
from barnabas.spark.pipeline.definition import Pipeline, Sink, TableSink
from barnabas.spark.pipeline.grouping import Group, letters_name
from barnabas.spark.pipeline.options import dead_letter_options, source_options
from barnabas.spark.pipeline.schemas import columns_of
from barnabas.spark.pipeline.sources import ORIGIN
from barnabas.spark.tables.direct import TopicRows
from barnabas.spark.tables.quarantine import Letters

QUARANTINE = "quarantine"


def is_direct(pipeline: Pipeline, sink: Sink) -> bool:
    """Whether the rows of a sink need not go through Spark: no step, rule or state changes them."""
    source = pipeline.sources.get(sink.source)
    return (
        source is not None
        and isinstance(sink, TableSink)
        and sink.mode == "append"
        and sink.column is None
        and not pipeline.quality.get(sink.source)
        and not source.dedupe
        # Keys and values of `text` are cast by Spark.
        and source.decode != "text"
    )


def direct_sink(pipeline: Pipeline, group: Group) -> TableSink | None:
    """The table of a query that writes nothing else, but perhaps the undecodable records of its source."""
    sinks = [sink for sink in pipeline.sinks if sink.name in group.members]
    if len(sinks) != 1 or not is_direct(pipeline, sinks[0]):
        return None
    (sink,) = sinks
    assert isinstance(sink, TableSink)
    others = [name for name in group.members if name != sink.name]
    if others != ([f"undecodable-{sink.source}"] if writes_letters(pipeline, sink) else []):
        return None
    return sink


def writes_letters(pipeline: Pipeline, sink: TableSink) -> bool:
    """Whether the query of a direct sink writes dead letters, too."""
    return pipeline.sources[sink.source].bad_records == QUARANTINE


def topic_rows(pipeline: Pipeline, sink: TableSink, group: Group, checkpoint: str) -> TopicRows:
    """The rows of a direct sink. If bad records are quarantined, the query writes their dead letters too."""
    source = pipeline.sources[sink.source]
    options = source_options(pipeline, source, pipeline.group_of(group.name))
    member = sink.name if group.is_shared else ""
    if source.decode == "none":
        return TopicRows(options, default_schema(options), member=member)
    schema = StructType.fromDDL(columns_of(source, ORIGIN))
    assert isinstance(schema, StructType)
    letters = _letters(pipeline, sink, group, checkpoint) if writes_letters(pipeline, sink) else None
    return TopicRows(options, schema, letters, member)


def _letters(pipeline: Pipeline, sink: TableSink, group: Group, checkpoint: str) -> Letters:
    """The names are those of a shared query, which this becomes if the file changes."""
    name = letters_name(group.name)
    options = {**dead_letter_options(pipeline, name), "checkpointLocation": checkpoint}
    return Letters(options, pipeline.name, sink.source, name)
