"""The table of APIs against the messages and what Kafka 4.x offers."""

from __future__ import annotations

import pytest

from barnabas.broker.apis import ROWS
from barnabas.wire.apis import api_of


@pytest.mark.parametrize("key", ROWS)
def test_every_version_served_has_a_message(key: int) -> None:
    api, row = api_of(key), ROWS[key]
    assert api is not None
    assert row.key == key
    assert api.first <= row.versions[0] <= row.versions[1] <= api.last
    assert api.name == row.handler.__name__
    assert row.name.lower() == api.name.replace("_", "")


def test_the_ranges_that_old_clients_look_for() -> None:
    """librdkafka up to 2.11.0 switches features on by single versions."""
    advertised = {key: row.advertised for key, row in ROWS.items()}
    for key, version in ((0, 0), (0, 3), (0, 7), (1, 4), (1, 10), (2, 1), (18, 0), (22, 0)):
        low, high = advertised[key]
        assert low <= version <= high


def test_only_api_versions_is_allowed_before_authentication() -> None:
    assert [key for key, row in ROWS.items() if row.before_authentication] == [18]


def test_produce_is_advertised_lower_than_it_is_served() -> None:
    assert (ROWS[0].advertised, ROWS[0].versions) == ((0, 13), (3, 13))
