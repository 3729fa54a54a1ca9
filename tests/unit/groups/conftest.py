"""A machine with two topics for the tests of this package."""

import pytest
from tests.support.group_calls import SETTINGS
from tests.support.group_machines import FakeTopics, MachineBench


@pytest.fixture
def bench() -> MachineBench:
    topics = FakeTopics()
    topics.make("topic", 4)
    return MachineBench(SETTINGS, topics)
