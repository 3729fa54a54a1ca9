"""Values decoded into columns while they are read, and what happens to values that cannot be decoded."""

import io
import json
import struct

import fastavro
import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructType
from tests.spark.reading import columns, read
from tests.spark.topics import Topics

from barnabas.client.errors import KafkaError
from barnabas.spark.decode.projection import BadRecordError
from barnabas.spark.options import OptionError
from barnabas.spark.source import BarnabasSource

Options = dict[str, str]
ORDER = columns(id=LongType(), name=StringType())
JSON = {"decode": "json"}


@pytest.fixture
def mixed(topics: Topics, topic: str) -> str:
    """A topic with good values, a tombstone and two bad ones."""
    topics.put(topic, [b'{"id":1,"name":"a"}', None, b'{"id":"x"}'], timestamp=1_700_000_000_123)
    topics.put(topic, [b"rubbish"], key=b"k", headers=[("trace", b"7")], timestamp=1_700_000_000_123)
    topics.put(topic, [b'{"id":2}'])
    return topic


def test_a_bad_value_fails_the_query_with_its_place(mixed: str, options: Options) -> None:
    with pytest.raises(BadRecordError, match=rf"{mixed}-0 at offset 2 cannot be decoded: .*badRecords"):
        read(options | JSON, ORDER)


def test_bad_values_become_nulls_and_say_why(mixed: str, options: Options) -> None:
    schema = columns(_offset=LongType(), id=LongType(), _error=StringType(), _value=BinaryType())
    rows = read(options | JSON | {"badRecords": "null"}, schema)
    assert [(row["_offset"], row["id"]) for row in rows] == [(0, 1), (1, None), (2, None), (3, None), (4, 2)]
    assert [row["_error"] is not None for row in rows] == [False, False, True, True, False]
    assert rows[3]["_error"] == "it is not a JSON object"
    assert rows[3]["_value"] == b"rubbish"


def test_bad_values_go_to_another_topic_with_error_and_origin(
    topics: Topics, mixed: str, options: Options
) -> None:
    letters = topics.make(f"{mixed}-dlq", 1)
    rows = read(options | JSON | {"badRecords": f"dlq:{letters}"}, ORDER)
    assert rows == [{"id": 1, "name": "a"}, {"id": None, "name": None}, {"id": 2, "name": None}]
    first, second = topics.records(letters)
    assert (first.key, first.value) == (None, b'{"id":"x"}')
    assert (second.key, second.value) == (b"k", b"rubbish")
    assert dict(second.headers) == {
        "trace": b"7",
        "barnabas.error": b"it is not a JSON object",
        "barnabas.topic": mixed.encode(),
        "barnabas.partition": b"0",
        "barnabas.offset": b"3",
        "barnabas.timestamp": b"1700000000123",
    }


def test_a_dead_letter_that_fails_again_keeps_its_origin(
    topics: Topics, mixed: str, options: Options
) -> None:
    letters, again = topics.make(f"{mixed}-dlq", 1), topics.make(f"{mixed}-dlq2", 1)
    read(options | JSON | {"badRecords": f"dlq:{letters}"}, ORDER)
    read(options | JSON | {"subscribe": letters, "badRecords": f"dlq:{again}"}, ORDER)
    headers = topics.records(again)[1].headers
    assert len(headers) == len(dict(headers))
    assert dict(headers)["barnabas.topic"] == mixed.encode()


def test_a_dead_letter_that_cannot_be_sent_fails_the_query(mixed: str, options: Options) -> None:
    nowhere = {"badRecords": "dlq:no/such/topic", "kafka.request.timeout.ms": "2000"}
    with pytest.raises(KafkaError):
        read(options | JSON | nowhere, ORDER)


def test_names_of_fields_and_of_the_records_own_columns_do_not_clash(
    topics: Topics, topic: str, options: Options
) -> None:
    topics.put(topic, [b'{"offset":77,"_offset":5}'])
    own = options | JSON | {"metadataPrefix": "kafka_"}
    schema = columns(offset=LongType(), _offset=LongType(), kafka_offset=LongType(), kafka_topic=StringType())
    assert read(own, schema) == [{"offset": 77, "_offset": 5, "kafka_offset": 0, "kafka_topic": topic}]


def test_json_needs_a_schema(options: Options) -> None:
    with pytest.raises(OptionError, match=r"\.schema\("):
        BarnabasSource(options | JSON).schema()
    with pytest.raises(OptionError, match="at least one column of the value"):
        BarnabasSource(options | JSON).reader(columns(_offset=LongType()))
    with pytest.raises(OptionError, match="_offset has the type bigint"):
        BarnabasSource(options | JSON).reader(columns(id=LongType(), _offset=StringType()))


def test_avro_has_the_columns_of_its_schema(topics: Topics, topic: str, options: Options) -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(schema), {"id": 7})
    topics.put(topic, [struct.pack(">bI", 0, 1) + data.getvalue(), b"\x01rubbish"])
    avro = options | {"decode": "avro", "avroSchema": json.dumps(schema), "badRecords": "null"}
    columns_read = BarnabasSource(avro).schema()
    assert isinstance(columns_read, StructType)
    assert columns_read.fieldNames() == ["id", "_topic", "_partition", "_offset", "_timestamp"]
    rows = read(avro | {"columns": "_offset,id,_error"})
    assert [(row["_offset"], row["id"]) for row in rows] == [(0, 7), (1, None)]
    assert "first byte is 1" in rows[1]["_error"]
