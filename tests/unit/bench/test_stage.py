"""Sizes of a run can be changed by name."""

import pytest
from tests.bench.stage import TINY, changed_size


def test_a_size_is_changed_by_its_name() -> None:
    changed = changed_size(TINY, ["seconds=0.5", "partitions_on_disk=4000"])
    assert (changed.seconds, changed.partitions_on_disk) == (0.5, 4000)
    assert changed.rounds == TINY.rounds


def test_the_error_for_an_unknown_size_lists_the_sizes() -> None:
    with pytest.raises(ValueError, match="there is no size second; there are seconds, rounds"):
        changed_size(TINY, ["second=1"])


def test_a_size_is_a_number() -> None:
    with pytest.raises(ValueError, match="many"):
        changed_size(TINY, ["rounds=many"])
