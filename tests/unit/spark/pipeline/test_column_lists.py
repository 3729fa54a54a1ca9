"""Schemas as in CREATE TABLE, read without Spark."""

import pytest

from barnabas.spark.pipeline.column_lists import SchemaMistake, columns_in

READABLE = (
    ("id long", ("id",)),
    ("id LONG, name: string", ("id", "name")),
    ("`order id` bigint NOT NULL COMMENT 'the key', amount decimal(10, 2)", ("order id", "amount")),
    ("a array<map<string, struct<x: int, y: array<double>>>>, b struct<>", ("a", "b")),
    ("id long, -- the key\n at timestamp_ntz", ("id", "at")),
    ("span interval day to second, code char(3)", ("span", "code")),
)
MISTAKES = (
    ("id lonk", "has the type 'lonk' for the column id; did you mean long?"),
    ("id", "has no type for the column id: write, for example, id string."),
    ("id long amount double", "needs ',' after the type of id, but has 'amount' there."),
    ("id long,", "needs the name of a column instead of 'its end'."),
    ("tags array<string", "needs '>' after the types of array, but has 'its end' there."),
    ("id long, id string", "names the column id twice."),
    ("id long; at date", "cannot be read at '; at date'."),
    ("id long NOT there", "has NOT without NULL."),
)


@pytest.mark.parametrize("text, names", READABLE)
def test_the_names_of_columns(text: str, names: tuple[str, ...]) -> None:
    assert columns_in(text) == names


@pytest.mark.parametrize("text, sentence", MISTAKES)
def test_mistakes(text: str, sentence: str) -> None:
    with pytest.raises(SchemaMistake) as raised:
        columns_in(text)
    assert str(raised.value) == sentence
