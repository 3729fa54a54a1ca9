"""Protobuf values as columns, with messages that are made here as protoc describes them."""

import base64
import datetime
import decimal
from typing import Any

import pyarrow
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2, wrappers_pb2
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from barnabas.spark.decode.projection import Payload
from barnabas.spark.decode.protobuf import ProtobufDecoder, schema_of
from barnabas.spark.options import OptionError, read_options
from barnabas.spark.settings import Decoding, decoding_of

FIELD = descriptor_pb2.FieldDescriptorProto


def _files() -> descriptor_pb2.FileDescriptorSet:
    """What protoc writes for:

    message Order {
      int64 id = 1;  uint64 large = 2;  Kind kind = 3;  repeated Line lines = 4;  map<string, int32> counts =
      5; google.protobuf.Timestamp at = 6;  google.protobuf.StringValue note = 7;  optional double price = 8;
      bytes raw = 9;
      enum Kind { TEA = 0; MILK = 1; }
      message Line { string name = 1; }
    }
    message Tree { Tree child = 1; }"""
    file = descriptor_pb2.FileDescriptorProto(
        name="shop.proto",
        package="shop",
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"],
    )
    order = file.message_type.add(name="Order")
    order.nested_type.add(name="Line").field.add(name="name", number=1, type=FIELD.TYPE_STRING, label=1)
    entry = order.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=FIELD.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=FIELD.TYPE_INT32, label=1)
    kind = order.enum_type.add(name="Kind")
    kind.value.add(name="TEA", number=0)
    kind.value.add(name="MILK", number=1)
    once, many = FIELD.LABEL_OPTIONAL, FIELD.LABEL_REPEATED
    message = FIELD.TYPE_MESSAGE
    order.field.add(name="id", number=1, type=FIELD.TYPE_INT64, label=once)
    order.field.add(name="large", number=2, type=FIELD.TYPE_UINT64, label=once)
    order.field.add(name="kind", number=3, type=FIELD.TYPE_ENUM, label=once, type_name=".shop.Order.Kind")
    order.field.add(name="lines", number=4, type=message, label=many, type_name=".shop.Order.Line")
    order.field.add(name="counts", number=5, type=message, label=many, type_name=".shop.Order.CountsEntry")
    order.field.add(name="at", number=6, type=message, label=once, type_name=".google.protobuf.Timestamp")
    order.field.add(name="note", number=7, type=message, label=once, type_name=".google.protobuf.StringValue")
    order.oneof_decl.add(name="_price")
    order.field.add(
        name="price", number=8, type=FIELD.TYPE_DOUBLE, label=once, proto3_optional=True, oneof_index=0
    )
    order.field.add(name="raw", number=9, type=FIELD.TYPE_BYTES, label=once)
    tree = file.message_type.add(name="Tree")
    tree.field.add(name="child", number=1, type=message, label=once, type_name=".shop.Tree")
    files = descriptor_pb2.FileDescriptorSet()
    for module in (timestamp_pb2, wrappers_pb2):
        module.DESCRIPTOR.CopyToProto(files.file.add())
    files.file.append(file)
    return files


FILES = _files()


def decoding(message: str = "shop.Order", files: bytes | None = None, **more: str) -> Decoding:
    data = FILES.SerializeToString() if files is None else files
    given = {
        "decode": "protobuf",
        "protobufDescriptors": base64.b64encode(data).decode(),
        "protobufMessage": message,
        "badRecords": "null",
    }
    return decoding_of(read_options(given | more))


def order(**fields: Any) -> bytes:
    pool = descriptor_pool.DescriptorPool()
    for file in FILES.file:
        pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))(**fields)
    data: bytes = made.SerializeToString()
    return data


def decoded(given: Decoding, *values: bytes | None, schema: StructType | None = None) -> Payload:
    return ProtobufDecoder(given, schema or schema_of(given)).decode(pyarrow.array(values, pyarrow.binary()))


def test_every_kind_of_field_has_a_column() -> None:
    assert schema_of(decoding()).simpleString() == (
        "struct<id:bigint,large:decimal(20,0),kind:string,lines:array<struct<name:string>>,"
        "counts:map<string,int>,at:timestamp,note:string,price:double,raw:binary>"
    )
    time = datetime.datetime(2026, 1, 5, 9, 0, 0, 250, tzinfo=datetime.UTC)
    value = order(
        id=7,
        large=2**64 - 1,
        kind=1,
        lines=[{"name": "tea"}, {}],
        counts={"tea": 2},
        at=time,
        note={"value": "x"},
        price=0.0,
        raw=b"\x00",
    )
    payload = decoded(decoding(), value, None, order(kind=5))
    assert payload.errors == {}
    first, null, default = payload.table.to_pylist()
    assert first == {
        "id": 7,
        "large": decimal.Decimal(2**64 - 1),
        "kind": "MILK",
        "lines": [{"name": "tea"}, {"name": ""}],
        "counts": [("tea", 2)],
        "at": time,
        "note": "x",
        "price": 0.0,
        "raw": b"\x00",
    }
    assert set(null.values()) == {None}
    assert (default["id"], default["kind"], default["lines"]) == (0, "5", [])
    assert (default["at"], default["note"], default["price"]) == (None, None, None)


def test_a_schema_chooses_columns_and_a_value_that_does_not_fit_is_bad_alone() -> None:
    schema = StructType([StructField("id", IntegerType()), StructField("other", LongType())])
    payload = decoded(decoding(), order(id=1), order(id=2**40), b"\xff\xff", schema=schema)
    assert payload.table.to_pylist()[0] == {"id": 1, "other": None}
    assert payload.errors.keys() == {1, 2}
    assert payload.errors[1].startswith("id: ")
    assert payload.errors[2].startswith("it is not a shop.Order")


def test_frames_of_confluent() -> None:
    given = decoding(protobufFraming="confluent")
    value = order(id=7)
    frames = [b"\x00\x00\x00\x00\x09\x00", b"\x00\x00\x00\x00\x09\x04\x02\x02", b"\x01\x00\x00\x00\x09\x00"]
    payload = decoded(given, *[frame + value for frame in frames])
    assert payload.table.column("id").to_pylist() == [7, 7, None]
    assert "no frame" in payload.errors[2]


@pytest.mark.parametrize(
    ("message", "files", "error"),
    [
        ("shop.Oder", None, "no complete message shop.Oder; they have .*shop.Order, shop.Tree"),
        ("shop.Order", b"not descriptors", "not what protoc"),
        ("shop.Tree", None, "contains itself"),
        ("shop.Order", b"\n\x00", "no messages"),
    ],
)
def test_descriptors_that_cannot_be_used(message: str, files: bytes | None, error: str) -> None:
    with pytest.raises(OptionError, match=error):
        schema_of(decoding(message, files))
