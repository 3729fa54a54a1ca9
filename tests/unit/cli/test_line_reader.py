"""How the console producer parses lines into records."""

import pytest

from barnabas.cli.failures import ToolError
from barnabas.cli.line_reader import Line, LineReader


def read(*lines: bytes, **properties: str) -> list[Line]:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return list(LineReader(named).records(iter(lines)))


def test_a_line_is_a_value_without_its_end() -> None:
    assert read(b"one\n", b"two\r\n", b"\n", b"three") == [
        Line(None, b"one"),
        Line(None, b"two"),
        Line(None, b""),
        Line(None, b"three"),
    ]


def test_all_other_bytes_belong_to_the_record() -> None:
    assert read(b"\xff\x00\rtext\x80\n", b"ends with\r") == [
        Line(None, b"\xff\x00\rtext\x80"),
        Line(None, b"ends with\r"),
    ]


def test_the_key_is_before_the_first_separator() -> None:
    assert read(b"k\tv\tw\n", parse_key="true") == [Line(b"k", b"v\tw")]
    assert read(b"k::v\n", b"::\n", parse_key=" TRUE ", key_separator="::") == [
        Line(b"k", b"v"),
        Line(b"", b""),
    ]


def test_headers_are_before_the_key() -> None:
    assert read(b"h1:v1,h2:v:2,h1:\tkey\tvalue\n", parse_headers="true", parse_key="true") == [
        Line(b"key", b"value", (("h1", b"v1"), ("h2", b"v:2"), ("h1", b"")))
    ]
    assert read(
        b"a=1;b=2|value\n",
        parse_headers="true",
        headers_delimiter="|",
        headers_separator=";",
        headers_key_separator="=",
    ) == [Line(None, b"value", (("a", b"1"), ("b", b"2")))]


def test_the_null_marker_means_null() -> None:
    lines = (b"NULL\tNULL\tNULL\n", b"h:NULL\tk\tv\n")
    assert read(*lines, parse_headers="true", parse_key="true", null_marker="NULL") == [
        Line(None, None),
        Line(b"k", b"v", (("h", None),)),
    ]


def test_a_line_without_a_separator_is_an_error_that_names_it() -> None:
    with pytest.raises(ToolError, match="No key separator found on line number 2: 'oops'"):
        read(b"k\tv\n", b"oops\n", parse_key="true")
    with pytest.raises(ToolError, match="No headers delimiter found on line number 1: 'oops'"):
        read(b"oops\n", parse_headers="true")
    with pytest.raises(ToolError, match="No header key separator found in pair 'oops' on line number 1"):
        read(b"a:b,oops\tv\n", parse_headers="true")
    with pytest.raises(ToolError, match="null marker 'NULL'"):
        read(b"NULL:b\tv\n", parse_headers="true", null_marker="NULL")


def test_errors_may_be_ignored() -> None:
    assert read(b"oops\n", b"a,b:1\tk\tv\n", parse_headers="true", parse_key="true", ignore_error="true") == [
        Line(None, b"oops"),
        Line(b"k", b"v", (("a", None), ("b", b"1"))),
    ]


@pytest.mark.parametrize(
    "one, other",
    [
        ("headers.delimiter", "headers.separator"),
        ("headers.separator", "headers.key.separator"),
        ("null.marker", "key.separator"),
    ],
)
def test_equal_separators_are_refused(one: str, other: str) -> None:
    with pytest.raises(ToolError, match=f"{one} and {other} must not be equal"):
        LineReader({one: "#", other: "#"})


def test_an_empty_separator_is_refused() -> None:
    with pytest.raises(ToolError, match=r"key\.separator must not be empty"):
        LineReader({"parse.key": "true", "key.separator": ""})
