"""Topics by name, list and pattern."""

import pytest

from barnabas.cli.failures import ToolError
from barnabas.cli.topic_filter import TopicFilter, chosen
from barnabas.client.admin import TopicListing


@pytest.mark.parametrize(
    "text, name, expected",
    [
        ("orders", "orders", True),
        ("orders", "orders2", False),
        ("orders", "my-orders", False),
        ("orders,payments", "payments", True),
        ("orders, payments", "payments", True),
        ('"orders"', "orders", True),
        ("'a|b'", "b", True),
        ("a.b", "axb", True),
        (r"a\.b", "axb", False),
        (".*", "anything", True),
    ],
)
def test_a_pattern_matches_whole_names(text: str, name: str, expected: bool) -> None:
    assert TopicFilter(text).allows(name) is expected


def test_an_invalid_pattern_is_an_error() -> None:
    with pytest.raises(ToolError, match=r"^\* is an invalid regex: "):
        TopicFilter("*")


def test_chosen_topics_are_sorted_and_internal_ones_can_be_excluded() -> None:
    listings = {
        name: TopicListing(name, is_internal=name.startswith("__")) for name in ("b", "__offsets", "a")
    }
    assert chosen(listings, None) == ["__offsets", "a", "b"]
    assert chosen(listings, None, exclude_internal=True) == ["a", "b"]
    assert chosen(listings, "__.*|b") == ["__offsets", "b"]
