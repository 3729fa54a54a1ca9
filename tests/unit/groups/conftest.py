"""A shard with two topics, shared by the stories about shards."""

import pytest
from tests.support.group_calls import SETTINGS
from tests.support.group_shards import FakeTopics, ShardBench


@pytest.fixture
def bench() -> ShardBench:
    topics = FakeTopics()
    topics.make("topic", 4)
    return ShardBench(SETTINGS, topics)
