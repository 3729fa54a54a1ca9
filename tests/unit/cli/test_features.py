"""The levels of features as Kafka's tool prints them."""

import pytest

from barnabas.cli.features import level_text


@pytest.mark.parametrize(
    ("feature", "level", "text"),
    [
        ("metadata.version", 7, "3.3-IV3"),
        ("metadata.version", 30, "4.3-IV0"),
        ("metadata.version", 99, "99"),
        ("group.version", 7, "7"),
    ],
)
def test_only_the_levels_of_the_metadata_have_names(feature: str, level: int, text: str) -> None:
    assert level_text(feature, level) == text
