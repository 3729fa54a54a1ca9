"""JSON values as columns: reading many values at once gives the same as reading each alone."""

import datetime
import decimal
import json
from typing import Any

import pyarrow
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.spark.decode.json import JsonDecoder, check_payload
from barnabas.spark.options import OptionError

SCHEMA = StructType([StructField("a", LongType()), StructField("b", StringType())])


def decoded(values: list[bytes | None], schema: StructType = SCHEMA) -> tuple[list[Any], dict[int, str]]:
    payload = JsonDecoder(schema).decode(pyarrow.array(values, pyarrow.binary()))
    assert payload.table.num_rows == len(values)
    return payload.table.to_pylist(), payload.errors


def one(kind: Any, text: str) -> Any:
    rows, errors = decoded([f'{{"a":{text}}}'.encode()], StructType([StructField("a", kind)]))
    return errors[0] if errors else rows[0]["a"]


def test_fields_become_columns_by_name() -> None:
    rows, errors = decoded([b'{"a":1,"b":"x"}', b'{"b":"y","c":[{}]}', None, b"{}"])
    assert rows == [{"a": 1, "b": "x"}, {"a": None, "b": "y"}, *[{"a": None, "b": None}] * 2]
    assert errors == {}


@pytest.mark.parametrize(
    "bad",
    [
        b'{"a":}',
        b'{"a":"text"}',
        b'{"at":"yesterday"}',
        # The error is about a text that other, good values have, too.
        b'{"at":"good"}',
        b'{"a":1} {"a":2}',
        b'{"b":"\xff"}',
    ],
)
def test_bad_values_of_every_kind_are_found(bad: bytes) -> None:
    schema = StructType([*SCHEMA.fields, StructField("at", TimestampType())])
    values = [b'{"a":%d,"b":"good"}' % number for number in range(300)]
    places = {0, 57, 58, 130, 299}
    for row in places:
        values[row] = bad
    rows, errors = decoded(list(values), schema)
    assert errors.keys() == places
    assert [row["a"] for row in rows] == [None if row in errors else row for row in range(300)]


def test_bad_values_are_found_and_the_others_kept() -> None:
    values = [b'{"a":%d}' % number for number in range(200)]
    for row in (0, 57, 58, 199):
        values[row] = b'{"a":'
    rows, errors = decoded(list(values))
    assert errors.keys() == {0, 57, 58, 199}
    assert [row["a"] for row in rows] == [None if row in errors else row for row in range(200)]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"  ",
        b"7",
        b"[1]",
        b"null",
        b'{"a":1} {"a":2}',
        b'{"a":1}x',
        b'{"a":"1"}',
        b'{"a":1.0}',
        b'{"a":1,"a":2}',
        b'{"b":5}',
        b'{"b":"\xff"}',
        b'{"b":"a\nb"}',
        b'{"a":99999999999999999999}',
        b'{"a":{}}',
        b'{"a":1',
        b'"a":1}',
        b"\xef\xbb\xbf{}",
    ],
)
def test_values_that_are_bad(text: bytes) -> None:
    rows, errors = decoded([b'{"a":1}', text, b'{"a":2}'])
    assert errors.keys() == {1}
    assert [row["a"] for row in rows] == [1, None, 2]


def test_spaces_and_newlines_around_and_inside_are_accepted() -> None:
    rows, errors = decoded([b' {"a":\n1}\r\n', b'{\n "b": "x"\n}'])
    assert (rows, errors) == ([{"a": 1, "b": None}, {"a": None, "b": "x"}], {})


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (IntegerType(), "-5", -5),
        (DoubleType(), "3", 3.0),
        (BooleanType(), "true", True),
        (StringType(), '"\\u00e9"', "é"),
        (DateType(), '"2024-02-29"', datetime.date(2024, 2, 29)),
        (DecimalType(10, 2), "1.25", decimal.Decimal("1.25")),
        (ArrayType(DateType()), '["2024-01-01",null]', [datetime.date(2024, 1, 1), None]),
        (StructType([StructField("x", DateType())]), '{"x":"2024-01-01"}', {"x": datetime.date(2024, 1, 1)}),
        (LongType(), "null", None),
    ],
)
def test_types(kind: Any, text: str, value: object) -> None:
    assert one(kind, text) == value


def test_times_are_utc_unless_they_say_otherwise() -> None:
    noon = datetime.datetime(2024, 1, 2, 12, tzinfo=datetime.UTC)
    assert one(TimestampType(), '"2024-01-02T12:00:00"') == noon
    assert one(TimestampType(), '"2024-01-02T14:00:00+02:00"') == noon


def test_an_impossible_date_is_bad() -> None:
    assert "2024-02-30" in one(DateType(), '"2024-02-30"')


@pytest.mark.parametrize("kind", [MapType(StringType(), LongType()), BinaryType(), ArrayType(BinaryType())])
def test_types_that_cannot_be_read_are_refused_before_anything_is_read(kind: Any) -> None:
    with pytest.raises(OptionError, match=r"column m.*from_json"):
        check_payload(StructType([StructField("m", kind)]))


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            '"',
            '"a"',
            '"b"',
            "1",
            '"x"',
            "{}",
            '{"a":1}',
            "\n",
            " ",
            "\\",
            "null",
        ]
    ),
    max_size=6,
).map(lambda parts: "".join(parts).encode())
OBJECTS = st.fixed_dictionaries(
    {}, optional={"a": st.integers(-(2**63), 2**63 - 1), "b": st.text(max_size=3), "c": st.integers()}
).map(lambda value: json.dumps(value).encode())


@settings(deadline=None, max_examples=200)
@given(st.lists(st.none() | FRAGMENTS | OBJECTS, max_size=6))
@example([b'{"c":', b'{"b":"x"}}{"a":3}'])
@example([b'{"c":[', b'{"b":"x"}]}{"a":3}'])
@example([b'{"a":{}', b'{"b":2}}{"a":3}'])
@example([b'{"b":"x}', b'{"}{"a":3}'])
@example([b'{"c":[{}', b"{}]}{}"])
@example([b"{}{}", b"  "])
def test_many_values_at_once_give_the_same_as_each_alone(values: list[bytes | None]) -> None:
    rows, errors = decoded(values)
    for position, value in enumerate(values):
        alone, wrong = decoded([value])
        assert rows[position] == alone[0]
        assert (position in errors) == bool(wrong)


@settings(deadline=None)
@given(st.lists(OBJECTS, min_size=1, max_size=20))
def test_good_values_are_the_same_as_with_pythons_reader(values: list[bytes]) -> None:
    rows, errors = decoded(list(values))
    assert not errors
    for row, value in zip(rows, values, strict=True):
        expected = json.loads(value)
        assert row == {"a": expected.get("a"), "b": expected.get("b")}
