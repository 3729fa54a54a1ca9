"""Which sinks need nothing of Spark but its batches."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import MapType, StringType, StructField, StructType

from barnabas.spark.options import OptionError
from barnabas.spark.pipeline.definition import Pipeline, Rule, Source, Step, TableSink, TopicSink, Watermark
from barnabas.spark.pipeline.direct import direct_sink, is_direct, topic_rows, writes_letters
from barnabas.spark.pipeline.grouping import Group
from barnabas.spark.ranges import RANGE_SCHEMA
from barnabas.spark.tables.direct import TopicRows, rows_in
from barnabas.spark.tables.sink import TableSource
from barnabas.spark.tables.target import TableTarget, target_of

SOURCE = Source(topics=("orders", "returns"), decode="json", schema="id long")
SINK = TableSink("orders", path="./orders")
PIPELINE = Pipeline(
    name="shop",
    bootstrap="localhost:9092",
    checkpoint="./state",
    sources={"orders": SOURCE},
    steps=(Step("large", sql="SELECT * FROM orders"),),
    sinks=(SINK,),
    dead_letters="dead",
    client={"security.protocol": "SSL"},
)


def with_source(**changes: Any) -> Pipeline:
    return replace(PIPELINE, sources={"orders": replace(SOURCE, **changes)})


@pytest.mark.parametrize(
    "pipeline",
    [
        PIPELINE,
        with_source(decode="none", schema=None),
        with_source(bad_records="quarantine"),
        # A watermark alone keeps every row.
        with_source(watermark=Watermark("at", "1 hour")),
    ],
)
def test_rows_of_a_source_need_nothing_of_spark(pipeline: Pipeline) -> None:
    assert is_direct(pipeline, SINK)


@pytest.mark.parametrize(
    ("pipeline", "sink"),
    [
        (PIPELINE, TableSink("large", path="./large")),
        (PIPELINE, TopicSink("orders", topic="copy")),
        (PIPELINE, replace(SINK, mode="upsert", key=("id",))),
        (with_source(dedupe=("id",)), SINK),
        (with_source(decode="text"), SINK),
        (PIPELINE, TableSink("orders", path="./{id}")),
        (replace(PIPELINE, quality={"orders": (Rule("positive", "id > 0"),)}), SINK),
    ],
)
def test_other_rows_go_through_spark(pipeline: Pipeline, sink: TableSink | TopicSink) -> None:
    assert not is_direct(pipeline, sink)


def group(*members: str) -> Group:
    name = members[0] if len(members) == 1 else "orders"
    return Group(name, "orders", "append", members)


def test_a_query_is_direct_if_it_writes_one_table_and_perhaps_undecodable_records() -> None:
    copy = TopicSink("orders", topic="copy")
    several = replace(PIPELINE, sinks=(SINK, copy))
    assert direct_sink(several, group(SINK.name)) == SINK
    assert direct_sink(several, group(copy.name)) is None
    assert direct_sink(several, group(SINK.name, copy.name)) is None
    quarantining = with_source(bad_records="quarantine")
    assert direct_sink(quarantining, group(SINK.name, "undecodable-orders")) == SINK
    # If another query writes the undecodable records, this one must only leave them out.
    assert direct_sink(quarantining, group(SINK.name)) is None
    assert direct_sink(quarantining, group("undecodable-orders")) is None


def test_only_quarantined_records_are_dead_letters() -> None:
    """The file has changed since the query was started: it has one member left, under the shared name."""
    left = Group("orders", "orders", "append", (SINK.name,))
    assert direct_sink(PIPELINE, left) == SINK
    assert not writes_letters(PIPELINE, SINK)
    assert writes_letters(with_source(bad_records="quarantine"), SINK)


def test_columns_that_cannot_be_read_are_refused_before_there_is_a_table(tmp_path: Path) -> None:
    schema = StructType([StructField("names", MapType(StringType(), StringType()))])
    rows = TopicRows({"kafka.bootstrap.servers": "a:1", "subscribe": "orders", "decode": "json"}, schema)
    options = {**TableTarget(str(tmp_path / "table")).as_options(), **rows.as_options()}
    with pytest.raises(OptionError, match="names has the type map"):
        TableSource(options).streamWriter(RANGE_SCHEMA, False)
    assert not (tmp_path / "table").exists()


def test_rows_as_options_of_the_sink_and_back() -> None:
    rows = topic_rows(with_source(decode="none", schema=None), SINK, group("query"), "./state/query")
    assert rows.options["commitOffsets"] == "shop-query"
    # Spark does not keep the case of the names of options.
    target = TableTarget("./orders", partition_by=("topic",))
    options = {name.lower(): text for name, text in {**target.as_options(), **rows.as_options()}.items()}
    found = rows_in(options)
    assert found is not None
    assert found.schema == rows.schema
    assert found.options == {name.lower(): text for name, text in rows.options.items()}
    assert target_of(options) == target
    assert rows_in(target.as_options()) is None
