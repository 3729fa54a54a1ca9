"""Debezium's changes as rows, with `_deleted`."""

import io
import json
from typing import Any

import fastavro
import pyarrow
import pytest
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from barnabas.spark.columns import value_schema
from barnabas.spark.decode.projection import Payload, decoder_of
from barnabas.spark.options import OptionError, read_options
from barnabas.spark.settings import Topics, decoding_of

ROW = StructType(
    [StructField("id", LongType()), StructField("name", StringType()), StructField("_deleted", BooleanType())]
)


def change(op: str, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    return {"before": before, "after": after, "op": op, "ts_ms": 1, "source": {"db": "shop"}, **more}


def decoded(*values: Any) -> Payload:
    decoding = decoding_of(read_options({"decode": "json", "envelope": "debezium", "badRecords": "null"}))
    texts = [
        value if value is None or isinstance(value, bytes) else json.dumps(value).encode() for value in values
    ]
    return decoder_of(decoding, ROW).decode(pyarrow.array(texts, pyarrow.binary()))


def row(id_: int | None, name: str | None, deleted: bool) -> dict[str, Any]:
    return {"id": id_, "name": name, "_deleted": deleted}


def test_changes_are_rows() -> None:
    tea, milk = {"id": 1, "name": "tea"}, {"id": 1, "name": "milk"}
    payload = decoded(
        change("r", None, tea), change("c", None, tea), change("u", tea, milk), change("d", milk), None
    )
    assert payload.errors == {}
    assert payload.skipped == {4}
    assert payload.table.to_pylist()[:4] == [
        row(1, "tea", False),
        row(1, "tea", False),
        row(1, "milk", False),
        row(1, "milk", True),
    ]


def test_changes_with_their_schema_beside_them() -> None:
    with_schema = {"schema": {"type": "struct"}, "payload": change("d", {"id": 1, "name": "tea"})}
    payload = decoded(with_schema, change("c", None, {"id": 2}))
    assert payload.errors == {}
    assert payload.table.to_pylist() == [row(1, "tea", True), row(2, None, False)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"{", "JSON"),
        ({"id": 1}, "its op is None"),
        (change("t"), "its op is 't'"),
        (change("d"), "no `before`"),
        (change("u", {"id": 1}), "no `after`"),
        (change("c", None, {"id": "one"}), "id"),
    ],
)
def test_a_bad_value_is_bad_alone(value: Any, message: str) -> None:
    good = change("c", None, {"id": 1})
    payload = decoded(good, value, good)
    assert payload.errors.keys() == {1}
    assert message in payload.errors[1]
    assert [each["id"] for each in payload.table.to_pylist()][::2] == [1, 1]


def test_avro_knows_the_columns_of_the_rows() -> None:
    value = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "long"}]}
    schema = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", value], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "op", "type": "string"},
        ],
    }
    given = {
        "decode": "avro",
        "envelope": "debezium",
        "avroFraming": "none",
        "avroSchema": json.dumps(schema),
    }
    decoding = decoding_of(read_options(given))
    columns = value_schema(decoding, Topics(names=("orders",)))
    assert columns.simpleString() == "struct<id:bigint,_deleted:boolean>"
    data = io.BytesIO()
    fastavro.schemaless_writer(
        data, fastavro.parse_schema(schema), {"before": {"id": 5}, "after": None, "op": "d"}
    )
    payload = decoder_of(decoding, columns).decode(pyarrow.array([data.getvalue()], pyarrow.binary()))
    assert payload.table.to_pylist() == [{"id": 5, "_deleted": True}]
    plain = json.dumps({**schema, "fields": schema["fields"][2:]})
    with pytest.raises(OptionError, match="not Debezium's"):
        value_schema(decoding_of(read_options(given | {"avroSchema": plain})), Topics())
