"""What a .properties file means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.definition import ConfigError
from barnabas.config.properties import dump_properties, load_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a \t = \t b  ", {"a": "b  "}),
        ("a = = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("# no\n! no\n  # no\n\na=b", {"a": "b"}),
        ("a=b # kept", {"a": "b # kept"}),
        ("a=one,\\\n   two,\\\r\n\tthree", {"a": "one,two,three"}),
        ("a=one\\\n# two", {"a": "one# two"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a=\\u0041\\t\\n\\q", {"a": "A\t\nq"}),
        ("a=\\ud83d\\ude00", {"a": "\N{GRINNING FACE}"}),
        ("a=1\ra=2", {"a": "2"}),
        ("listeners=PLAINTEXT://h:1", {"listeners": "PLAINTEXT://h:1"}),
        ("=b", {"": "b"}),
    ],
)
def test_syntax(text: str, expected: dict[str, str]) -> None:
    assert load_properties(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "a=\\u"])
def test_a_short_unicode_escape_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="four hexadecimal digits"):
        load_properties(text)


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_written_is_read_back(properties: dict[str, str]) -> None:
    assert load_properties(dump_properties(properties)) == properties


@given(st.text())
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    try:
        load_properties(text)
    except ConfigError as error:
        assert str(error).endswith(".")
