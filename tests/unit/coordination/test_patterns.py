"""Which regular expressions of clients are taken, and what they match."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.patterns import Pattern
from barnabas.errors import ErrorCode, KafkaError


def refused(code: ErrorCode) -> Any:
    return pytest.raises(KafkaError, check=lambda error: error.code is code)


@pytest.mark.parametrize(
    ("expression", "matching", "others"),
    [
        ("orders", ["orders"], ["orders2", "my-orders", ""]),
        ("orders.*", ["orders", "orders-eu"], ["order"]),
        (r"a\.b|c", ["a.b", "c"], ["axb", "a.bc"]),
        ("[a-c]+[^0-9]", ["abcx", "a-"], ["a1", "xa"]),
        (r"\w+-\d{2,3}", ["log-12", "log-123"], ["log-1", "log-1234", ".-12"]),
        ("^(eu|us)-.+$", ["eu-x"], ["eu-", "xeu-x"]),
        ("(?i)AbC", ["abc", "ABC"], ["abd"]),
        ("(?i:a)b", ["Ab"], ["AB"]),
        ("(?P<name>x)(?:y)?", ["x", "xy"], ["xyy"]),
        (r"\Qa.b\E+", ["a.b"], ["axb"]),
        ("[[:digit:]_]*", ["", "1_2"], ["a"]),
        (r"\x61\x{62}", ["ab"], ["a"]),
        ("a{2}b{0,1}c{1,}", ["aac", "aabccc"], ["ac", "aab"]),
        (r".*\bb.*", ["a.b", "b"], ["ab"]),
        ("a{,2}", [], ["a", "aa"]),
        ("[]a]+", ["aa"], ["b"]),
    ],
)
def test_an_expression_matches_whole_names(expression: str, matching: list[str], others: list[str]) -> None:
    pattern = Pattern(expression)
    assert [name for name in matching + others if pattern.matches(name)] == matching


@pytest.mark.parametrize(
    "expression",
    [
        "(",
        ")",
        "[",
        "[b-a]",
        "*",
        "a**",
        "a{2,1}",
        "a{1001}",
        "(?=a)",
        r"\1",
        "\\",
        "(?<n>a",
        "[[:odd:]]",
        r"\xZZ",
        "(?z)",
        "((a{100}){100}){100}",
    ],
)
def test_what_re2_refuses_is_refused(expression: str) -> None:
    with refused(ErrorCode.INVALID_REGULAR_EXPRESSION):
        Pattern(expression)


@pytest.mark.parametrize("expression", ["(.?){1000}(.?){1000}x", "x" * 32767, r"(\pL?){100}"])
def test_an_expression_that_is_large_when_written_out_is_refused(expression: str) -> None:
    with refused(ErrorCode.INVALID_REGULAR_EXPRESSION):
        Pattern(expression)


def test_an_expression_may_name_a_thousand_topics() -> None:
    names = [f"orders-topic-{number * 7919 % 100_003}" for number in range(1000)]
    pattern = Pattern("|".join(names))
    assert all(map(pattern.matches, names))
    assert not pattern.matches("orders-topic-")


def test_a_backtracking_matcher_would_never_finish() -> None:
    assert not Pattern("(a+)+b").matches("a" * 249)


def test_a_dot_matches_any_character_of_a_transactional_id() -> None:
    """Unlike topic names, they may have any character. Only a line feed needs `(?s)`, as in Kafka."""
    assert Pattern("copy.job").matches("copy:job")
    assert Pattern("c.*b").matches("copy / für job b")
    assert not Pattern("copy.job").matches("copy\njob")
    assert Pattern("(?s)copy.job").matches("copy\njob")


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", "a.b"])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}"])).map(lambda pair: f"({pair[0]}){pair[1]}"),
    ),
    max_leaves=6,
)


@given(expression=EXPRESSIONS, name=st.text("ab_", max_size=6))
def test_expressions_mean_what_they_mean_elsewhere(expression: str, name: str) -> None:
    assert Pattern(expression).matches(name) == (re.fullmatch(expression, name) is not None)
