"""Tables that get the rows of a topic without Spark in between: once, with dead letters, and as if the rows
had gone through Spark."""

import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType
from tests.spark.reading import columns, stream_reader
from tests.spark.running import run_to_its_end
from tests.spark.topics import Topics
from tests.spark.writing import committed_records, task_context

from barnabas.spark.decode.projection import BadRecordError
from barnabas.spark.pipeline.definition import Pipeline, Rule, Source, TableSink
from barnabas.spark.pipeline.direct import topic_rows
from barnabas.spark.pipeline.grouping import Group
from barnabas.spark.pipeline.running import run
from barnabas.spark.ranges import RANGE_SCHEMA
from barnabas.spark.tables.direct import TopicRows, write_topic
from barnabas.spark.tables.quarantine import Letters
from barnabas.spark.tables.sink import StreamTableWriter, TableSource
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.spark.tables.writing import write_stream

SCHEMA = columns(id=LongType(), name=StringType(), _offset=LongType())
NOW = {"availableNow": True}


class Query:
    """A direct query as Spark runs it, but in one process; `run` processes everything that is there as one
    batch."""

    def __init__(self, rows: TopicRows, target: TableTarget) -> None:
        self._options = {**target.as_options(), **rows.as_options()}
        self._reader = stream_reader({**rows.options, "rangesOnly": "true"})
        self._start = self._reader.initialOffset()

    def _writer(self) -> StreamTableWriter:
        return TableSource(dict(self._options)).streamWriter(RANGE_SCHEMA, False)

    def run(self, batch: int) -> None:
        end = self._reader.latestOffset(self._start, self._reader.getDefaultReadLimit())
        planned = pickle.loads(pickle.dumps(self._writer()))
        with task_context("query", batch):
            messages = [
                planned.write(self._reader.read(each)) for each in self._reader.partitions(self._start, end)
            ]
        self._writer().commit(pickle.loads(pickle.dumps(messages)), batch)


@pytest.fixture
def options(options: dict[str, str]) -> dict[str, str]:
    return options | {"decode": "json", "badRecords": "null", "startingOffsets": "earliest"}


def ids_in(target: TableTarget) -> list[Any]:
    return [row["id"] for row in sorted(store_of(target).read().to_pylist(), key=lambda row: row["_offset"])]


def test_a_batch_that_runs_twice_is_there_once(
    topics: Topics, topic: str, options: dict[str, str], tmp_path: Path
) -> None:
    topics.put(topic, [b'{"id":1}', b'{"id":2}', None, b"rubbish"])
    target = TableTarget(str(tmp_path / "table"))
    query = Query(TopicRows(options, SCHEMA), target)
    for _ in range(2):
        query.run(batch=0)
    assert ids_in(target) == [1, 2, None, None]


def test_a_bad_record_fails_the_query(
    topics: Topics, topic: str, options: dict[str, str], tmp_path: Path
) -> None:
    topics.put(topic, [b"rubbish"])
    rows = TopicRows(options | {"badRecords": "fail"}, SCHEMA)
    with pytest.raises(BadRecordError, match=f"{topic}-0 at offset 0"):
        Query(rows, TableTarget(str(tmp_path / "table"))).run(batch=0)


def test_bad_records_are_dead_letters_exactly_once(
    topics: Topics, topic: str, options: dict[str, str], tmp_path: Path
) -> None:
    topics.put(topic, [b'{"id":1}'])
    topics.put(topic, [b"rubbish"], key=b"k", headers=[("trace", b"7")])
    topics.put(topic, [b'{"id":2}'])
    topics.put(topic, [b'{"id":"x"}'], partition=1)
    dead = topics.make(f"{topic}-dead")
    writing = {
        "kafka.bootstrap.servers": topics.bootstrap,
        "topic": dead,
        "delivery": "exactly-once",
        "transactional.id": dead,
        "checkpointLocation": str(tmp_path / "checkpoint"),
    }
    rows = TopicRows(options, SCHEMA, Letters(writing, "shop", "orders", "letters"), member="table")
    target = TableTarget(str(tmp_path / "table"))
    for _ in range(2):
        # A second start of the same query, which does not know that the batch was committed.
        Query(rows, target).run(batch=0)
    assert ids_in(target) == [1, 2]
    assert store_of(target).last_batch("query/table") == 0
    letters = {record.value: record for record in committed_records(topics.bootstrap, dead)}
    assert letters.keys() == {b"rubbish", b'{"id":"x"}'}
    assert letters[b"rubbish"].key == b"k"
    assert dict(letters[b"rubbish"].headers) == {
        "trace": b"7",
        "barnabas.error": b"it is not a JSON object",
        "barnabas.pipeline": b"shop",
        "barnabas.step": b"orders",
        "barnabas.topic": topic.encode(),
        "barnabas.partition": b"0",
        "barnabas.offset": b"1",
    }


def test_a_direct_query_writes_under_the_names_of_a_shared_one(spark: SparkSession) -> None:
    source = Source(topics=("orders",), decode="json", schema="id long", bad_records="quarantine")
    sink = TableSink("orders", path="./table")
    pipeline = Pipeline("shop", "localhost:9092", "./state", {"orders": source}, (sink,), dead_letters="dead")
    members = (sink.name, "undecodable-orders")
    rows = topic_rows(pipeline, sink, Group("orders", "orders", "append", members), "./state/orders")
    assert (rows.member, rows.options["commitOffsets"]) == (sink.name, "shop-orders")
    assert rows.letters is not None
    assert rows.letters.member == "orders-dead-letters"
    assert rows.letters.options["transactional.id"] == pipeline.transactional_id_of("orders-dead-letters")


def test_a_pipeline_with_dead_letters_goes_on_through_spark(
    spark: SparkSession, topics: Topics, topic: str, tmp_path: Path
) -> None:
    """A rule is added to the file: the rows go through Spark from then on, with the same checkpoint."""
    dead = topics.make(f"{topic}-dead")
    pipeline = Pipeline(
        name=topic,
        bootstrap=topics.bootstrap,
        checkpoint="state",
        sources={
            "orders": Source(topics=(topic,), decode="json", schema="id long", bad_records="quarantine")
        },
        sinks=(TableSink("orders", path="table"),),
        dead_letters=dead,
    )
    ruled = replace(pipeline, quality={"orders": (Rule("small", "id < 100", "drop"),)})
    for number, each in enumerate((pipeline, ruled)):
        topics.put(topic, [b'{"id":%d}' % number, b"rubbish %d" % number])
        (done,) = run(spark, each, tmp_path, once=True, watch=lambda _: None)
        # As if the process were killed before Spark stored that the batch is done.
        shutil.rmtree(tmp_path / "state" / done.name / "commits")
    assert ids_in(TableTarget(str(tmp_path / "table"))) == [0, 1]
    letters = committed_records(topics.bootstrap, dead)
    assert sorted(record.value for record in letters) == [b"rubbish 0", b"rubbish 1"]


def test_a_query_goes_on_without_spark_in_between(
    spark: SparkSession, topics: Topics, topic: str, options: dict[str, str], tmp_path: Path
) -> None:
    """And back again. The checkpoint, the marks and the rows are the same for both ways."""
    target, checkpoint = TableTarget(str(tmp_path / "table"), partition_by=("name",)), tmp_path / "checkpoint"
    frame = spark.readStream.format("barnabas").options(**options).schema(SCHEMA).load()

    def through_spark() -> Any:
        return write_stream(frame, target, str(checkpoint), "through", NOW)

    def direct() -> Any:
        return write_topic(spark, TopicRows(options, SCHEMA), target, str(checkpoint), "direct", NOW)

    for number, start in enumerate((direct, through_spark)):
        topics.put(topic, [b'{"id":%d,"name":"%d"}' % (number, number % 2)])
        run_to_its_end(start)
        # As if the process were killed after the commit of the table, before Spark stored that.
        shutil.rmtree(checkpoint / "commits")
    run_to_its_end(direct)
    assert ids_in(target) == [0, 1]
