"""Keys land where Kafka puts them."""

import pytest

from barnabas.coordination.hashing import partition_for
from barnabas.kernels.hashing import java_hash


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("test-group", 627841412),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
    ],
)
def test_the_hash_is_javas(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_the_partition_of_a_group() -> None:
    assert partition_for("test-group", 50) == 12


def test_the_smallest_integer_counts_as_zero() -> None:
    assert partition_for("polygenelubricants", 50) == 0
