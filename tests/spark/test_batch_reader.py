"""Batch queries against a broker, without a JVM: where they begin and end, and what they read."""

import datetime
import json
import time
from collections.abc import Generator
from typing import Any

import pyarrow
import pytest
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType
from tests.spark.reading import batch_reader, columns, read, rows_of, values
from tests.spark.topics import Topics

from barnabas.client.types import OffsetAndMetadata
from barnabas.ids import TopicPartition
from barnabas.spark.brokers import brokers_of
from barnabas.spark.fetching import DataLossError
from barnabas.spark.options import OptionError
from barnabas.spark.reader import PushdownReader
from barnabas.spark.source import BarnabasSource
from barnabas.spark.stream import TopicStreamReader
from barnabas.testing import Broker

Options = dict[str, str]


def test_the_columns_are_the_stock_connectors(topics: Topics, topic: str, options: Options) -> None:
    topics.put(topic, [b"first"], key=b"k", timestamp=1_700_000_000_123, headers=[("h", b"x"), ("n", None)])
    topics.put(topic, [None], partition=1, timestamp=1_700_000_000_456)
    rows = read(options | {"includeHeaders": "true"})
    assert rows == [
        {
            "key": b"k",
            "value": b"first",
            "topic": topic,
            "partition": 0,
            "offset": 0,
            "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=datetime.UTC),
            "timestampType": 0,
            "headers": [{"key": "h", "value": b"x"}, {"key": "n", "value": None}],
        },
        {
            "key": None,
            "value": None,
            "topic": topic,
            "partition": 1,
            "offset": 0,
            "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 456_000, tzinfo=datetime.UTC),
            "timestampType": 0,
            "headers": None,
        },
    ]
    assert "headers" not in read(options)[0]


def test_batches_have_exactly_the_schema_that_spark_requests(
    topics: Topics, topic: str, options: Options
) -> None:
    topics.put(topic, [b"x"])
    source = BarnabasSource(options | {"includeHeaders": "true"})
    reader = source.reader(source.schema())
    (batch,) = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    assert isinstance(batch, pyarrow.RecordBatch)
    assert batch.schema == to_arrow_schema(source.schema(), timezone="UTC")


def test_columns_are_chosen_by_option_or_schema(topics: Topics, topic: str, options: Options) -> None:
    topics.put(topic, [b"x"], key=b"k")
    assert read(options | {"columns": "offset, value"}) == [{"offset": 0, "value": b"x"}]
    assert read(options, columns(value=BinaryType(), key=BinaryType())) == [{"value": b"x", "key": b"k"}]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (columns(values=BinaryType()), "no column values to read; did you mean value?"),
        (columns(value=StringType()), "value has the type binary and cannot be read as string"),
        (StructType([StructField("offset", LongType(), False)]), "offset is NOT NULL"),
        (StructType([]), "no columns"),
    ],
)
def test_schemas_that_cannot_be_read(options: Options, schema: StructType, message: str) -> None:
    with pytest.raises(OptionError, match=message.replace("?", r"\?")):
        BarnabasSource(options).reader(schema)
    with pytest.raises(OptionError, match="no column oops"):
        BarnabasSource(options | {"columns": "oops"}).schema()


def test_topics_by_pattern_and_partitions_by_assignment(topics: Topics, topic: str, options: Options) -> None:
    other = topics.make(f"{topic}-other", 1)
    topics.numbers(topic, 0, 3)
    topics.numbers(topic, 3, 5, partition=1)
    topics.numbers(other, 5, 9)
    servers = {"kafka.bootstrap.servers": options["kafka.bootstrap.servers"]}
    assert values(read(servers | {"subscribePattern": f"{topic}.*"})) == list(range(9))
    assert values(read(servers | {"subscribePattern": topic})) == list(range(5)), "all of the name must match"
    assert values(read(servers | {"subscribe": f"{topic},{other}"})) == list(range(9))
    assert values(read(servers | {"assign": json.dumps({topic: [1]})})) == [3, 4]
    assert read(servers | {"subscribePattern": "no-such-topic.*"}) == []


def test_the_error_names_the_topic_or_partition_that_does_not_exist(options: Options, topic: str) -> None:
    with pytest.raises(OptionError, match="There is no topic nobody"):
        read(options | {"subscribe": "nobody"})
    servers = {"kafka.bootstrap.servers": options["kafka.bootstrap.servers"]}
    with pytest.raises(OptionError, match=f"There is no partition {topic}-7"):
        read(servers | {"assign": json.dumps({topic: [0, 7]})})


def test_offsets_where_a_query_begins_and_ends(topics: Topics, topic: str, options: Options) -> None:
    topics.numbers(topic, 0, 10)
    topics.numbers(topic, 10, 15, partition=1)
    start = {"startingOffsets": json.dumps({topic: {"0": 7, "1": -2}})}
    assert values(read(options | start)) == [7, 8, 9, *range(10, 15)]
    end = {"endingOffsets": json.dumps({topic: {"0": 8, "1": -1}})}
    assert values(read(options | start | end)) == [7, *range(10, 15)]
    assert values(read(options | {"startingOffsets": "-2"})) == [8, 9, 13, 14]
    assert values(read(options | {"endingOffsets": "-9"})) == [0]
    assert len(read(options | {"startingOffsets": "-1000"})) == 15
    with pytest.raises(OptionError, match="must name exactly the partitions"):
        read(options | {"startingOffsets": json.dumps({topic: {"0": 7}})})
    with pytest.raises(OptionError, match=r"endingOffsets has offset 99 .* ends at offset 10"):
        read(options | {"endingOffsets": json.dumps({topic: {"0": 99, "1": 1}})})


def test_times_where_a_query_begins_and_ends(topics: Topics, topic: str, options: Options) -> None:
    for number in range(5):
        topics.put(topic, [b"%d" % number], timestamp=1000 * number + 1000)
    topics.put(topic, [b"9"], partition=1, timestamp=9000)
    assert values(read(options | {"startingTimestamp": "3500"})) == [3, 4, 9]
    assert values(read(options | {"startingTimestamp": "2000", "endingTimestamp": "4000"})) == [1, 2]
    by_partition = {"startingOffsetsByTimestamp": json.dumps({topic: {"0": 5000, "1": 0}})}
    assert values(read(options | by_partition)) == [4, 9]
    with pytest.raises(OptionError, match="no record at or after the starting time"):
        read(options | {"startingTimestamp": "6000"})
    lenient = {"startingTimestamp": "6000", "startingOffsetsByTimestampStrategy": "latest"}
    assert values(read(options | lenient)) == [9]


def test_the_last_minutes(topics: Topics, topic: str, options: Options) -> None:
    now = int(time.time() * 1000)
    topics.put(topic, [b"1"], timestamp=now - 3_600_000)
    topics.put(topic, [b"2"], timestamp=now - 60_000)
    assert values(read(options | {"startingOffsets": "now-10m"})) == [2]
    assert values(read(options | {"endingOffsets": "now-10m"})) == [1]


def test_a_query_begins_at_the_offsets_of_a_group(topics: Topics, topic: str, options: Options) -> None:
    topics.numbers(topic, 0, 10)
    topics.numbers(topic, 10, 12, partition=1)
    group = f"group-{topic}"
    client = {"bootstrap.servers": options["kafka.bootstrap.servers"]}
    brokers_of(client).commit(group, {TopicPartition(topic, 0): OffsetAndMetadata(8)})
    started = options | {"startingOffsets": "group", "kafka.group.id": group}
    assert values(read(started)) == [8, 9, 10, 11], "earliest where the group has nothing"


@pytest.mark.parametrize(
    ("split", "tasks"),
    [
        ({"minPartitions": "5"}, 5),
        ({"maxRecordsPerPartition": "30"}, 6),
        ({"maxPartitions": "1"}, 1),
        ({"maxRecordsPerPartition": "30", "maxPartitions": "4"}, 4),
        ({}, 2),
    ],
)
def test_ranges_are_split_and_nothing_is_lost(
    topics: Topics, topic: str, options: Options, split: Options, tasks: int
) -> None:
    topics.numbers(topic, 0, 100)
    topics.numbers(topic, 100, 150, partition=1)
    reader = batch_reader(options | split)
    partitions = reader.partitions()
    assert len(partitions) == tasks
    assert values(rows_of(reader, partitions)) == list(range(150))


def test_many_small_fetches_and_batches_read_the_same(topics: Topics, topic: str, options: Options) -> None:
    for start in range(0, 1000, 100):
        topics.put(topic, [b"%d" % number + b" " * 500 for number in range(start, start + 100)])
    small = {"fetchBytes": "70000", "batchRows": "37", "batchBytes": "9k"}
    reader = batch_reader(options | small)
    (partition,) = reader.partitions()
    batches = list(reader.read(partition))
    assert max(len(batch) for batch in batches) <= 37
    assert [int(value) for batch in batches for value in batch.column("value").to_pylist()] == list(
        range(1000)
    )


def test_open_and_aborted_transactions_are_left_out(topics: Topics, topic: str, options: Options) -> None:
    topics.numbers(topic, 0, 2)
    topics.put_in_transaction(topic, [b"2", b"3"], commits=False)
    topics.put_in_transaction(topic, [b"4", b"5"], commits=True)
    committed = options | {"isolation.level": "read_committed"}
    assert values(read(options)) == [0, 1, 2, 3, 4, 5]
    assert values(read(committed)) == [0, 1, 4, 5]
    assert values(read(committed | {"maxRecordsPerPartition": "1"})) == [0, 1, 4, 5]


def test_records_that_are_deleted_before_they_are_read(topics: Topics, topic: str, options: Options) -> None:
    topics.numbers(topic, 0, 10)
    strict, lenient = batch_reader(options), batch_reader(options | {"failOnDataLoss": "false"})
    planned, planned_too = strict.partitions(), lenient.partitions()
    topics.cut(topic, 6)
    with pytest.raises(
        DataLossError, match=r"Offset 0 of .* was deleted .* the first record is now at offset 6"
    ):
        rows_of(strict, planned)
    assert values(rows_of(lenient, planned_too)) == [6, 7, 8, 9]
    begins_early = options | {"startingOffsets": json.dumps({topic: {"0": 3, "1": 0}})}
    with pytest.raises(DataLossError, match=r"The records of .* from offset 3 to 5 were deleted before"):
        read(begins_early)
    assert values(read(begins_early | {"failOnDataLoss": "false"})) == [6, 7, 8, 9]


def test_filters_narrow_what_is_read(topics: Topics, topic: str, options: Options) -> None:
    topics.numbers(topic, 0, 10)
    topics.numbers(topic, 10, 20, partition=1)
    reader = batch_reader(options | {"pushFilters": "true"})
    assert isinstance(reader, PushdownReader)
    filters = [EqualTo(("partition",), 1), GreaterThanOrEqual(("offset",), 7)]
    assert list(reader.pushFilters(list(filters))) == filters, "Spark checks them as well"
    assert values(rows_of(reader, reader.partitions())) == [17, 18, 19]


def test_reading_stops_when_spark_needs_no_more_rows(topics: Topics, topic: str, options: Options) -> None:
    topics.numbers(topic, 0, 1000)
    reader = batch_reader(options | {"batchRows": "10", "fetchBytes": "4k"})
    (partition,) = reader.partitions()
    batches = reader.read(partition)
    assert isinstance(batches, Generator)
    assert len(next(batches)) == 10
    batches.close()
    assert values(read(options)) == list(range(1000)), "the connection can be used again"


def test_a_broker_that_is_not_there_is_named(topic: str) -> None:
    away = {
        "kafka.bootstrap.servers": "127.0.0.1:9",
        "subscribe": topic,
        "kafka.default.api.timeout.ms": "300",
    }
    with pytest.raises(TimeoutError, match=r"127\.0\.0\.1:9 did not answer within 0\.3 s; the last error"):
        read(away)


def test_the_source_streams_and_reads(options: Options) -> None:
    source: Any = BarnabasSource(options)
    assert source.name() == "barnabas"
    assert isinstance(source.streamReader(source.schema()), TopicStreamReader)


def test_a_broker_that_is_killed_while_a_task_reads() -> None:
    with Broker({"num.partitions": "1"}, subprocess=True) as broker:
        with Topics(broker.bootstrap) as topics:
            topics.make("orders", 1)
            for start in range(0, 1000, 100):
                topics.put("orders", [b"%d" % number + b" " * 500 for number in range(start, start + 100)])
        options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "orders"}
        reader = batch_reader(options | {"fetchBytes": "70000", "batchRows": "50"})
        (partition,) = reader.partitions()
        batches = reader.read(partition)
        values = next(batches).column("value").to_pylist()
        broker.kill()
        broker.restart()
        values += [value for batch in batches for value in batch.column("value").to_pylist()]
        assert [int(value) for value in values] == list(range(1000))
