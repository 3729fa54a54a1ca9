"""sasl.jaas.config is read as Java reads it, and no error repeats a secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.jaas import JaasError, parse_jaas


def test_the_usual_form() -> None:
    module = parse_jaas(
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice"\n'
        '  password="a\\"b\\\\c=d;" tokenauth=true; // a comment'
    )
    assert module.name == "ScramLoginModule"
    assert module.options == {"username": "alice", "password": 'a"b\\c=d;', "tokenauth": "true"}
    assert "alice" not in repr(module)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("Module", "flag `required` is missing"),
        ("Module always;", "must have the flag"),
        ('Module required password="secret"', "final `;` is missing"),
        ('Module required password="secret;', "not closed"),
        ('Module required password "secret";', "without a value after the flag"),
        ('Module required a="b" password;', "without a value after option 1"),
        ("Module required password=;", "a value after `=` is missing"),
        ('Module required password="secret"; Other required;', "more than one"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(JaasError) as caught:
        parse_jaas(text)
    assert sentence in str(caught.value)
    assert "secret" not in str(caught.value)


@given(st.text())
def test_any_text_is_a_module_or_an_error(text: str) -> None:
    try:
        parse_jaas(text)
    except JaasError:
        return


@given(st.text(min_size=1), st.text())
def test_any_value_can_be_quoted(user: str, password: str) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    module = parse_jaas(f"M required username={quoted(user)} password={quoted(password)};")
    assert module.options == {"username": user, "password": password}
