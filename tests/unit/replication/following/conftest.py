"""Tests of followers run twice: with and without their short way."""

import pytest
from tests.unit.replication.following.small_cluster import SmallCluster


@pytest.fixture(autouse=True, params=[True, False], ids=["short", "ordinary"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests have the same results, whichever way the fetches of followers take."""
    monkeypatch.setattr(SmallCluster, "has_plain_channels", request.param)
