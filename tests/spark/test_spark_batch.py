"""Batch queries on a real Spark: Spark finds the format, and the result is that of Spark's Kafka
connector."""

import datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Options = dict[str, str]


def load(spark: "SparkSession", options: Options, schema: str | None = None) -> Any:
    reader = spark.read.format("barnabas").options(**options)
    return (reader if schema is None else reader.schema(schema)).load()


def test_rows_and_schema(spark: "SparkSession", topics: Topics, topic: str, options: Options) -> None:
    topics.put(topic, [b"x"], key=b"k", timestamp=1_700_000_000_123, headers=[("h", b"v")])
    topics.put(topic, [None], partition=1)
    frame = load(spark, options | {"includeHeaders": "true"})
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    first, second = frame.orderBy("partition").collect()
    assert (bytes(first.key), bytes(first.value), first.topic, first.offset) == (b"k", b"x", topic, 0)
    assert first.timestamp.replace(tzinfo=None) == datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000)
    assert [(header.key, bytes(header.value)) for header in first.headers] == [("h", b"v")]
    assert (second.value, second.headers) == (None, None)


def test_all_rows_are_read_once_in_many_tasks(
    spark: "SparkSession", topics: Topics, topic: str, options: Options
) -> None:
    topics.numbers(topic, 0, 3000)
    topics.numbers(topic, 3000, 5000, partition=1)
    frame = load(spark, options | {"minPartitions": "6", "batchRows": "700"}, "value binary, offset long")
    assert frame.rdd.getNumPartitions() == 6
    total = frame.selectExpr("count(*)", "count(distinct value)", "sum(cast(cast(value as string) as int))")
    assert tuple(total.first()) == (5000, 5000, sum(range(5000)))


def test_filters_reach_the_reader(
    spark: "SparkSession", topics: Topics, topic: str, options: Options
) -> None:
    topics.numbers(topic, 0, 100)
    topics.numbers(topic, 100, 200, partition=1)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushed = load(spark, options | {"pushFilters": "true", "maxRecordsPerPartition": "10"})
        rows = pushed.where("partition = 1 AND offset >= 85 AND offset < 95")
        assert rows.rdd.getNumPartitions() == 1, "the only range left"
        assert sorted(int(row.value) for row in rows.collect()) == list(range(185, 195))
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert load(spark, options).where("partition = 1 AND offset >= 85").count() == 15


def test_decoded_columns(spark: "SparkSession", topics: Topics, topic: str, options: Options) -> None:
    topics.put(topic, [b'{"id":1,"at":"2024-01-02T03:04:05Z","tags":["a"]}', b"rubbish", b'{"id":3}'])
    letters = topics.make(f"{topic}-dlq", 1)
    decoding = {"decode": "json", "badRecords": f"dlq:{letters}"}
    frame = load(spark, options | decoding, "id long, at timestamp, tags array<string>, _offset long")
    # Spark must not sort the rows: it would read the source twice and send the dead letter twice.
    first, second = sorted(frame.collect(), key=lambda row: row.id)
    assert (first.id, first.tags, first._offset) == (1, ["a"], 0)
    assert first.at.replace(tzinfo=None) == datetime.datetime(2024, 1, 2, 3, 4, 5)
    assert (second.id, second.at, second.tags, second._offset) == (3, None, None, 2)
    assert [letter.value for letter in topics.records(letters)] == [b"rubbish"]


def test_mistakes_are_reported_in_one_sentence(spark: "SparkSession", options: Options) -> None:
    with pytest.raises(PySparkException, match="no option subscrib; did you mean subscribe"):
        load(spark, options | {"subscrib": "x"})
    with pytest.raises(PySparkException, match="There is no topic nobody at"):
        load(spark, options | {"subscribe": "nobody"}).collect()
    with pytest.raises(PySparkException, match="value has the type binary"):
        load(spark, options, "value string").collect()
