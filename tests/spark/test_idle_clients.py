"""Processes that Spark keeps, although they have nothing to do."""

import time
from collections.abc import Iterator

import pytest
from tests.spark.topics import Topics

from barnabas.spark.brokers import Brokers
from barnabas.spark.settings import Topics as TopicNames

SECONDS_MAX = 30.0


@pytest.fixture
def brokers(topics: Topics) -> Iterator[Brokers]:
    brokers = Brokers({"bootstrap.servers": topics.bootstrap, "metadata.max.age.ms": "100"})
    yield brokers
    brokers.close()


def test_a_deleted_topic_is_not_looked_for(topics: Topics, topic: str, brokers: Brokers) -> None:
    names = TopicNames((topic,))
    assert len(brokers.partitions(names)) == 2
    topics.admin.delete_topics([topic])
    deadline = time.monotonic() + SECONDS_MAX
    while topic in brokers.tracked:
        assert time.monotonic() < deadline, "the topic is still looked for"
        time.sleep(0.02)
    assert brokers.partitions(names, missing_allowed=True) == frozenset()
    topics.make(topic, 3)
    assert len(brokers.partitions(names)) == 3
