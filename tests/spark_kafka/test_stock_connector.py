"""Spark's own Kafka connector works against our broker: batch, stream, sink, and its requests for offsets."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.topics import Topics

from barnabas.ids import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark_kafka
Options = dict[str, str]
TIME = 1_700_000_000_000


def load(spark: "SparkSession", options: Options) -> "DataFrame":
    return spark.read.format("kafka").options(**options).load()


def numbers(frame: "DataFrame") -> list[int]:
    return sorted(int(bytes(row.value)) for row in frame.select("value").collect())


def run(frame: "DataFrame", path: Path, checkpoint: Path) -> None:
    """Run one batch with everything there is, to its end."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    query = writer.option("path", str(path)).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert query.exception() is None


def test_batch(spark: "SparkSession", topics: Topics, topic: str, options: Options) -> None:
    topics.put(topic, [b"0"], key=b"k", timestamp=TIME, headers=[("h", b"v")])
    topics.numbers(topic, 1, 100)
    topics.numbers(topic, 100, 200, partition=1)
    frame = load(spark, options | {"includeHeaders": "true"})
    assert numbers(frame) == list(range(200))
    first = frame.where("partition = 0 AND offset = 0").first()
    assert first is not None
    assert (bytes(first.key), first.topic, first.timestamp.timestamp()) == (b"k", topic, TIME / 1000)
    assert [(header.key, bytes(header.value)) for header in first.headers] == [("h", b"v")]
    part = {
        "startingOffsets": json.dumps({topic: {"0": 90, "1": -2}}),
        "endingOffsets": json.dumps({topic: {"0": -1, "1": 5}}),
        "minPartitions": "4",
    }
    assert numbers(load(spark, options | part)) == [*range(90, 105)]


def test_batch_by_time_and_pattern(
    spark: "SparkSession", topics: Topics, topic: str, options: Options
) -> None:
    for number in range(10):
        topics.put(topic, [b"%d" % number], timestamp=TIME + number)
        topics.put(topic, [b"%d" % (number + 10)], partition=1, timestamp=TIME + number)
    by_pattern = {
        "kafka.bootstrap.servers": options["kafka.bootstrap.servers"],
        "subscribePattern": f"{topic}.*",
    }
    times = {"startingTimestamp": str(TIME + 4), "endingTimestamp": str(TIME + 6)}
    assert numbers(load(spark, by_pattern | times)) == [4, 5, 14, 15]


def test_transactions_are_read_with_the_requested_isolation(
    spark: "SparkSession", topics: Topics, topic: str, options: Options
) -> None:
    topics.put_in_transaction(topic, [b"1", b"2"], commits=False)
    topics.put_in_transaction(topic, [b"3"], commits=True)
    assert numbers(load(spark, options)) == [1, 2, 3]
    assert numbers(load(spark, options | {"kafka.isolation.level": "read_committed"})) == [3]


def test_stream_goes_on_from_its_checkpoint(
    spark: "SparkSession", topics: Topics, topic: str, options: Options, tmp_path: Path
) -> None:
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    stream = spark.readStream.format("kafka").options(**options, startingOffsets="earliest")
    topics.numbers(topic, 0, 30)
    run(stream.option("maxOffsetsPerTrigger", "20").load().select("value"), out, checkpoint)
    assert numbers(spark.read.parquet(str(out))) == list(range(30))
    topics.numbers(topic, 30, 50, partition=1)
    topics.admin.create_partitions({topic: 3})
    with Topics(topics.bootstrap) as aware_of_it:
        aware_of_it.numbers(topic, 50, 60, partition=2)
    run(stream.load().select("value"), out, checkpoint)
    assert numbers(spark.read.parquet(str(out))) == list(range(60))


def test_sink(spark: "SparkSession", topics: Topics, topic: str, options: Options, tmp_path: Path) -> None:
    server = options["kafka.bootstrap.servers"]
    rows = spark.range(100).selectExpr(
        "cast(id AS string) AS key",
        "cast(id AS string) AS value",
        "cast(id % 2 AS int) AS partition",
        "array(named_struct('key', 'h', 'value', cast('v' AS binary))) AS headers",
    )
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", server)
    writer.option("topic", topic).option("includeHeaders", "true").save()
    first, second = topics.records(topic, 0), topics.records(topic, 1)
    assert sorted(int(record.value) for record in first) == list(range(0, 100, 2))
    assert sorted(int(record.value) for record in second) == list(range(1, 100, 2))
    assert all(record.headers == (("h", b"v"),) and record.key == record.value for record in first)

    copy = topics.make(f"{topic}-copy", 1)
    query = (
        spark.readStream.format("kafka")
        .options(**options, startingOffsets="earliest")
        .load()
        .select("key", "value")
        .writeStream.format("kafka")
        .options(**{"kafka.bootstrap.servers": server, "topic": copy})
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert sorted(int(record.value) for record in topics.records(copy)) == list(range(100))


def test_deleted_records_are_skipped_if_data_loss_is_allowed(
    spark: "SparkSession", topics: Topics, topic: str, options: Options
) -> None:
    topics.numbers(topic, 0, 20)
    topics.cut(topic, 10)
    lost: dict[str, Any] = {topic: {"0": 5, "1": -2}}
    lenient = options | {"startingOffsets": json.dumps(lost), "failOnDataLoss": "false"}
    assert numbers(load(spark, lenient)) == list(range(10, 20))
    assert topics.admin.list_offsets({TopicPartition(topic, 0): -2})[TopicPartition(topic, 0)].offset == 10


def test_both_connectors_see_the_same(
    spark: "SparkSession", topics: Topics, topic: str, options: Options
) -> None:
    topics.put(topic, [b"a", None, b""], key=b"k", headers=[("x", None)])
    topics.put(topic, [b"b"], partition=1)
    with_headers = options | {"includeHeaders": "true"}
    stock, ours = load(spark, with_headers), spark.read.format("barnabas").options(**with_headers).load()
    assert stock.schema == ours.schema
    assert stock.exceptAll(ours).count() == 0 and ours.exceptAll(stock).count() == 0
