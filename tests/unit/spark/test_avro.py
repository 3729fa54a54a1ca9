"""Avro values as columns, with a registry that is a real HTTP server."""

import datetime
import decimal
import io
import json
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import fastavro
import pyarrow
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from barnabas.client.schema_registry import Registry, RegistryError, UnknownSchemaError
from barnabas.spark.decode.avro import AvroDecoder, schema_of
from barnabas.spark.decode.avro_types import spark_schema
from barnabas.spark.decode.projection import Payload
from barnabas.spark.options import OptionError
from barnabas.spark.pipeline.definition import Source
from barnabas.spark.pipeline.schemas import columns_of
from barnabas.spark.settings import Decoding, Topics

ID = {"name": "id", "type": "long"}
FIRST: dict[str, Any] = {"type": "record", "name": "Order", "fields": [ID]}
SECOND: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "buyer", "type": "shop.Person"},
    ],
}
PERSON = {
    "type": "record",
    "name": "Person",
    "namespace": "shop",
    "fields": [{"name": "name", "type": "string"}],
}
# A writer without a registry needs all types in one schema.
WHOLE = SECOND | {"fields": [*SECOND["fields"][:2], {"name": "buyer", "type": PERSON}]}


class FakeRegistry(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, str | None]] = []
        refers = [{"name": "shop.Person", "subject": "person", "version": 1}]
        second = {"schema": json.dumps(SECOND), "references": refers}
        self.answers: dict[str, Any] = {
            "/schemas/ids/1": {"schema": json.dumps(FIRST)},
            "/schemas/ids/2": second,
            "/schemas/ids/9": {"schema": "syntax", "schemaType": "PROTOBUF"},
            "/subjects/orders-value/versions/latest": second | {"id": 2, "version": 2},
            "/subjects/person/versions/1": {"schema": json.dumps(PERSON)},
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeRegistry

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers["Authorization"]))
        answer = self.server.answers.get(self.path)
        body = json.dumps(answer or {"error_code": 40403}).encode()
        self.send_response(200 if answer else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Do not print requests."""


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    server = FakeRegistry()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def decoding(**given: Any) -> Decoding:
    values = {
        "format": "avro",
        "prefix": "_",
        "avro_schema": None,
        "framing": "confluent",
        "registry_url": None,
        "registry_user": None,
        "subject": None,
        "bad_records": "null",
        "dead_letter_topic": "",
    }
    return Decoding(**(values | given))


def framed(schema_id: int, schema: Any, record: Any) -> bytes:
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(schema), record)
    return struct.pack(">bI", 0, schema_id) + data.getvalue()


def decoded(decoder: AvroDecoder, *values: bytes | None) -> Payload:
    return decoder.decode(pyarrow.array(values, pyarrow.binary()))


def test_each_value_is_read_with_the_schema_it_was_written_with(registry: FakeRegistry) -> None:
    columns = schema_of(decoding(registry_url=registry.url), Topics(names=("orders",)))
    assert columns.simpleString() == "struct<id:bigint,note:string,buyer:struct<name:string>>"
    decoder = AvroDecoder(decoding(registry_url=registry.url), columns)
    new = framed(2, WHOLE, {"id": 8, "note": "x", "buyer": {"name": "Ada"}})
    cells = decoded(decoder, framed(1, FIRST, {"id": 7}), new, None, new)
    assert cells.errors == {}
    assert cells.table.to_pylist() == [
        {"id": 7, "note": None, "buyer": None},
        {"id": 8, "note": "x", "buyer": {"name": "Ada"}},
        {"id": None, "note": None, "buyer": None},
        {"id": 8, "note": "x", "buyer": {"name": "Ada"}},
    ]
    requested = [path for path, _ in registry.requests if path.startswith("/schemas/ids/")]
    assert sorted(requested) == ["/schemas/ids/1", "/schemas/ids/2"], "a schema is asked for once"


def test_the_columns_of_a_source_follow_the_registry(registry: FakeRegistry) -> None:
    source = Source(topics=("orders",), decode="avro", registry=registry.url, bad_records="quarantine")
    columns = columns_of(source, "_offset long")
    assert columns == "`id` bigint, `note` string, `buyer` struct<`name`: string>\n, _offset long"
    more = [*FIRST["fields"], {"name": "price", "type": ["null", "double"], "default": None}]
    latest = {"schema": json.dumps(FIRST | {"fields": more}), "id": 3, "version": 3}
    registry.answers["/subjects/orders-value/versions/latest"] = latest
    assert columns_of(source, "_offset long") == "`id` bigint, `price` double\n, _offset long"
    # A schema as in CREATE TABLE chooses columns.
    assert columns_of(replace(source, schema="id long"), "_offset long") == "id long\n, _offset long"


def test_a_given_schema_is_what_values_are_read_into(registry: FakeRegistry) -> None:
    target = FIRST | {"fields": [*FIRST["fields"], {"name": "shop", "type": "string", "default": "here"}]}
    given = decoding(registry_url=registry.url, avro_schema=json.dumps(target))
    decoder = AvroDecoder(given, schema_of(given, Topics()))
    assert decoded(decoder, framed(1, FIRST, {"id": 7})).table.to_pylist() == [{"id": 7, "shop": "here"}]


def test_without_a_registry_the_given_schema_wrote_the_values() -> None:
    given = decoding(avro_schema=json.dumps(FIRST))
    value = framed(12345, FIRST, {"id": 7})
    assert decoded(AvroDecoder(given, schema_of(given, Topics())), value).table.to_pylist() == [{"id": 7}]
    plain = decoding(avro_schema=json.dumps(FIRST), framing="none")
    assert decoded(AvroDecoder(plain, schema_of(plain, Topics())), value[5:]).table.to_pylist() == [{"id": 7}]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "too short for a framed"),
        (b"\x00\x00", "too short for a framed"),
        (b"{'id': 1}", "first byte is 123"),
        (struct.pack(">bI", 0, 77) + b"\x02", "no schema with id 77"),
        (struct.pack(">bI", 0, 1), "malformed"),
        (struct.pack(">bI", 0, 1) + b"\x02rest", "4 extra bytes after"),
    ],
)
def test_bad_values(registry: FakeRegistry, value: bytes, message: str) -> None:
    decoder = AvroDecoder(decoding(registry_url=registry.url), StructType([StructField("id", LongType())]))
    good = framed(1, FIRST, {"id": 7})
    cells = decoded(decoder, good, value, good)
    assert [row["id"] for row in cells.table.to_pylist()] == [7, None, 7]
    assert message in cells.errors[1]


def test_a_value_that_does_not_fit_its_column_is_bad_alone(registry: FakeRegistry) -> None:
    decoder = AvroDecoder(decoding(registry_url=registry.url), StructType([StructField("id", StringType())]))
    table = decoded(decoder, None, framed(1, FIRST, {"id": 7}))
    assert table.errors.keys() == {1}
    assert "does not fit" in table.errors[1]


def test_what_the_registry_cannot_answer_is_an_error(registry: FakeRegistry) -> None:
    with pytest.raises(UnknownSchemaError):
        Registry(registry.url).latest("nobody")
    with pytest.raises(RegistryError, match="PROTOBUF"):
        Registry(registry.url).by_id(9)
    with pytest.raises(OptionError, match=r"schema\.registry\.subject"):
        schema_of(decoding(registry_url=registry.url), Topics(pattern="a.*"))


def test_a_registry_that_is_not_there_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.client.schema_registry.PAUSE_SECONDS", 0.0)
    with pytest.raises(RegistryError, match="cannot be reached"):
        Registry("http://127.0.0.1:9").by_id(1)


def test_credentials_are_sent(registry: FakeRegistry) -> None:
    Registry(registry.url, "me:secret").by_id(1)
    assert registry.requests == [("/schemas/ids/1", "Basic bWU6c2VjcmV0")]


def test_every_type_of_avro_has_a_column() -> None:
    names = {
        "flag": "boolean",
        "small": "int",
        "ratio": "float",
        "wide": "double",
        "raw": "bytes",
        "either": ["int", "long"],
        "list": {"type": "array", "items": "string"},
        "map": {"type": "map", "values": "long"},
        "color": {"type": "enum", "name": "Color", "symbols": ["RED"]},
        "hash": {"type": "fixed", "name": "Hash", "size": 2},
        "again": "Hash",
        "day": {"type": "int", "logicalType": "date"},
        "at": {"type": "long", "logicalType": "timestamp-millis"},
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        "id": {"type": "string", "logicalType": "uuid"},
        "time": {"type": "int", "logicalType": "time-millis"},
    }
    schema = {"type": "record", "name": "All", "fields": [{"name": n, "type": t} for n, t in names.items()]}
    given = decoding(avro_schema=json.dumps(schema))
    record = {
        "flag": True,
        "small": 1,
        "ratio": 0.5,
        "wide": 0.25,
        "raw": b"\x00",
        "either": 2**40,
        "list": ["a"],
        "map": {"k": 1},
        "color": "RED",
        "hash": b"ab",
        "again": b"cd",
        "day": datetime.date(2024, 1, 1),
        "at": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        "price": decimal.Decimal("1.25"),
        "id": "0b8e1c5e-0000-4000-8000-000000000000",
        "time": datetime.time(0, 0, 1),
    }
    cells = decoded(AvroDecoder(given, schema_of(given, Topics())), framed(1, schema, record))
    assert cells.errors == {}
    assert cells.table.to_pylist() == [record | {"map": [("k", 1)], "time": 1000}]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("string", "must be a record"),
        ({"type": "record", "name": "R", "fields": [{"name": "f", "type": ["int", "string"]}]}, "a union"),
        (
            {"type": "record", "name": "R", "fields": [{"name": "f", "type": ["null", "R"]}]},
            "refers to itself",
        ),
        ({"type": "record", "name": "R", "fields": [{"name": "f", "type": "Nobody"}]}, "not defined"),
    ],
)
def test_schemas_without_columns_say_why(schema: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        spark_schema(schema)


def test_a_given_schema_that_is_no_json_is_an_error() -> None:
    with pytest.raises(OptionError, match="avroSchema is not valid JSON"):
        schema_of(decoding(avro_schema="{"), Topics())
