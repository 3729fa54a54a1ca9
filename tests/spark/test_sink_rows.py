"""How rows are written, and what is refused before a query starts."""

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from tests.spark.topics import Topics
from tests.spark.writing import HEADERS, Query, numbers, rows, run_job

from barnabas.client.producer.partitioners import key_partition
from barnabas.errors import ErrorCode, KafkaError
from barnabas.spark.options import OptionError
from barnabas.spark.sink.writers import StreamWriter
from barnabas.spark.source import BarnabasSource


@pytest.fixture
def sink(topics: Topics, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": topics.bootstrap, "topic": topic}


def test_every_row_is_a_record_and_keys_choose_partitions(
    topics: Topics, topic: str, sink: dict[str, str]
) -> None:
    Query(sink).run(0, [numbers(0, 50), numbers(50, 50)], [numbers(50, 100)])
    for partition in (0, 1):
        values = [record.value for record in topics.records(topic, partition)]
        expected = [str(number).encode() for number in range(100)]
        assert sorted(values) == sorted(key for key in expected if key_partition(key, 2) == partition)


def test_tombstones_headers_and_partitions(topics: Topics, topic: str, sink: dict[str, str]) -> None:
    batch = rows(
        key=pa.array([b"a", b"b", None], pa.binary()),
        value=pa.array([None, "text", ""], pa.string()),
        headers=pa.array([[("h", b"1"), ("h", None)], None, []], HEADERS),
        partition=pa.array([1, 1, 1], pa.int32()),
    )
    run_job(sink, [batch])
    assert topics.records(topic, 0) == []
    first, second, third = topics.records(topic, 1)
    assert (first.key, first.value, list(first.headers)) == (b"a", None, [("h", b"1"), ("h", None)])
    assert (second.key, second.value, list(second.headers)) == (b"b", b"text", [])
    assert (third.key, third.value) == (None, b"")


def test_a_partition_that_is_null_is_left_to_the_key(
    topics: Topics, topic: str, sink: dict[str, str]
) -> None:
    other = 1 - key_partition(b"k", 2)
    batch = rows(
        key=pa.array(["k", "k"]),
        value=pa.array(["own", "named"]),
        partition=pa.array([None, other], pa.int32()),
    )
    run_job(sink, [batch])
    assert [record.value for record in topics.records(topic, other)] == [b"named"]
    assert [record.value for record in topics.records(topic, 1 - other)] == [b"own"]


def test_rows_name_their_topics_unless_the_option_does(
    topics: Topics, topic: str, sink: dict[str, str]
) -> None:
    other = topics.make(f"{topic}-other", 1)
    batch = rows(topic=pa.array([other, topic, other]), value=pa.array(["1", "2", "3"]))
    run_job({"kafka.bootstrap.servers": topics.bootstrap}, [batch])
    assert [record.value for record in topics.records(other)] == [b"1", b"3"]
    run_job(sink, [batch])
    assert len(topics.records(other)) == 2
    assert len(topics.records(topic, 0)) + len(topics.records(topic, 1)) == 4


def test_headers_and_times_can_be_left_out_or_requested(
    topics: Topics, topic: str, sink: dict[str, str]
) -> None:
    batch = rows(
        value=pa.array(["x"]),
        partition=pa.array([0], pa.int32()),
        headers=pa.array([[("h", b"1")]], HEADERS),
        timestamp=pa.array([1_600_000_000_000_000], pa.timestamp("us", "UTC")),
    )
    run_job({**sink, "includeHeaders": "false"}, [batch])
    run_job({**sink, "includeTimestamp": "true"}, [batch])
    plain, whole = topics.records(topic, 0)
    assert (list(plain.headers), list(whole.headers)) == ([], [("h", b"1")])
    assert plain.timestamp > whole.timestamp == 1_600_000_000_000


def test_a_row_that_cannot_be_written_fails_the_task(topics: Topics, sink: dict[str, str]) -> None:
    with pytest.raises(KafkaError) as caught:
        run_job(sink, [rows(value=pa.array(["x" * 2_000_000]))])
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    # The sink waits for a partition that does not exist, since it may just be added.
    impatient = {**sink, "kafka.max.block.ms": "500"}
    with pytest.raises(KafkaError, match=r"within max\.block\.ms"):
        run_job(impatient, [rows(value=pa.array(["x"]), partition=pa.array([7], pa.int32()))])
    nowhere = {"kafka.bootstrap.servers": topics.bootstrap}
    with pytest.raises(ValueError, match="no topic"):
        run_job(nowhere, [rows(value=pa.array(["x"]), topic=pa.array([None], pa.string()))])


SERVERS = {"kafka.bootstrap.servers": "localhost:1"}
TOPIC = {**SERVERS, "topic": "t"}
TEXT = {"value": pa.string()}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"key": pa.string()}, TOPIC, "no column value"),
        ({**TEXT, "headres": HEADERS}, TOPIC, "did you mean headers"),
        ({**TEXT, "amount": pa.int64()}, TOPIC, "amount is not part of a record"),
        ({"value": pa.int64()}, TOPIC, "value has the type bigint, but must be string or binary"),
        ({**TEXT, "key": pa.float64()}, TOPIC, "key has the type double"),
        ({**TEXT, "partition": pa.int64()}, TOPIC, "partition has the type bigint, but must be int"),
        ({**TEXT, "headers": pa.list_(pa.string())}, TOPIC, "headers has the type array<string>"),
        ({**TEXT, "topic": pa.int32()}, SERVERS, "topic has the type int, but must be string"),
        (TEXT, SERVERS, "no topic to write to"),
        (TEXT, {"topic": "t"}, "kafka.bootstrap.servers must name a broker"),
        (TEXT, {**TOPIC, "includeHeaders": "true"}, "no column headers"),
        (TEXT, {**TOPIC, "path": "x"}, "take no path"),
        (TEXT, {**TOPIC, "topci": "x"}, "did you mean topic"),
        (TEXT, {**TOPIC, "delivery": "twice"}, "one of at-least-once, exactly-once"),
        (TEXT, {**TOPIC, "delivery": "exactly-once"}, "needs the option transactional.id"),
        (TEXT, {**TOPIC, "transactional.id": "x"}, "needs delivery=exactly-once"),
        (TEXT, {**TOPIC, "kafka.transactional.id": "x"}, "write it as the option"),
        (TEXT, {**TOPIC, "kafka.key.serializer": "x"}, "cast them to string or binary"),
        (TEXT, {**TOPIC, "kafka.compresion.type": "lz4"}, "did you mean kafka.compression.type"),
        (TEXT, {**TOPIC, "kafka.linger.ms": "soon"}, "kafka.* option is wrong"),
        (
            TEXT,
            {**TOPIC, "delivery": "exactly-once", "transactional.id": "x", "kafka.acks": "1"},
            "needs acks=all",
        ),
        (
            {**TEXT, "topic": pa.string()},
            {**SERVERS, "delivery": "exactly-once", "transactional.id": "x"},
            "needs the option markerTopic",
        ),
    ],
)
def test_what_is_refused_when_a_query_is_planned(
    columns: dict[str, pa.DataType], options: dict[str, str], message: str
) -> None:
    schema = from_arrow_schema(pa.schema(list(columns.items())))
    with pytest.raises(OptionError) as caught:
        BarnabasSource(options).streamWriter(schema, False)
    assert message in str(caught.value)


def test_settings_of_consumers_and_columns_of_the_source_are_ignored() -> None:
    options = {**TOPIC, "kafka.fetch.max.bytes": "1", "kafka.isolation.level": "read_committed"}
    read = {**TEXT, "topic": pa.string(), "offset": pa.int64(), "timestampType": pa.int32()}
    schema = from_arrow_schema(pa.schema(list(read.items())))
    assert isinstance(BarnabasSource(options).streamWriter(schema, True), StreamWriter)


def test_a_topic_cannot_be_overwritten() -> None:
    with pytest.raises(OptionError, match="mode append"):
        BarnabasSource(TOPIC).writer(from_arrow_schema(pa.schema([("value", pa.string())])), True)
