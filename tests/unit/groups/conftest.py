"""A machine with two topics, shared by the stories about machines."""

import pytest
from tests.support.group_calls import SETTINGS
from tests.support.group_machines import FakeTopics, ShardBench


@pytest.fixture
def bench() -> ShardBench:
    topics = FakeTopics()
    topics.make("topic", 4)
    return ShardBench(SETTINGS, topics)
