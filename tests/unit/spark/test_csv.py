"""CSV values as columns."""

import datetime
import decimal
import re
from typing import Any

import pyarrow
import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.spark.decode.csv import CsvDecoder, check_payload
from barnabas.spark.decode.projection import Payload
from barnabas.spark.options import OptionError


def decoded(values: list[bytes | None], delimiter: str = ",", **kinds: DataType) -> Payload:
    schema = StructType([StructField(name, kind) for name, kind in kinds.items()])
    return CsvDecoder(delimiter, schema).decode(pyarrow.array(values, pyarrow.binary()))


def test_fields_are_the_columns_in_order() -> None:
    payload = decoded(
        [b"7,tea,3.5,true,2026-01-05,2026-01-05T09:00:00Z,1.25", None, b"8,,,,,,"],
        id=LongType(),
        name=StringType(),
        price=DoubleType(),
        hot=BooleanType(),
        day=DateType(),
        at=TimestampType(),
        paid=DecimalType(9, 2),
    )
    empty: dict[str, Any] = dict.fromkeys(("name", "price", "hot", "day", "at", "paid"))
    assert payload.errors == {}
    assert payload.table.to_pylist() == [
        {
            "id": 7,
            "name": "tea",
            "price": 3.5,
            "hot": True,
            "day": datetime.date(2026, 1, 5),
            "at": datetime.datetime(2026, 1, 5, 9, tzinfo=datetime.UTC),
            "paid": decimal.Decimal("1.25"),
        },
        {"id": None, **empty},
        {"id": 8, **empty},
    ]


def test_times_are_in_utc_unless_they_say_otherwise() -> None:
    payload = decoded([b"2026-01-05 09:00:00", b"2026-01-05T10:00:00+01:00"], at=TimestampType())
    assert payload.errors == {}
    assert len(set(payload.table.column("at").to_pylist())) == 1


def test_quotes_and_another_delimiter() -> None:
    payload = decoded([b'1;"a;""b""\nc"', b"2;d\r\n"], ";", id=IntegerType(), text=StringType())
    assert payload.errors == {}
    assert payload.table.column("text").to_pylist() == ['a;"b"\nc', "d"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"1", "it has 1 fields, but the schema has 2 columns"),
        (b"1,2,3", "it has 3 fields"),
        (b"1,a\n2,b", "cannot be read|not one line|new-line"),
        (b'1,"open', "unexpected end"),
        (b"", "it has 0 fields"),
        (b"\xff,a", "not UTF-8"),
        (b"one,a", "id: "),
    ],
)
def test_a_bad_value_is_bad_alone(value: bytes, message: str) -> None:
    payload = decoded([b"1,a", value, b"3,c"], id=LongType(), name=StringType())
    assert payload.errors.keys() == {1}
    assert re.search(message, payload.errors[1])
    assert payload.table.column("id").to_pylist() == [1, None, 3]


def test_types_that_a_field_cannot_have() -> None:
    with pytest.raises(OptionError, match="cannot be read from CSV"):
        check_payload(StructType([StructField("a", ArrayType(LongType()))]))
    with pytest.raises(OptionError, match="at least one column"):
        check_payload(StructType())
