"""A part of the broker that fails on a change of the metadata does not keep the change from the others, and
gets it later itself."""

import asyncio
import logging

import pytest

from barnabas.broker.metadata_followers import MetadataFollowers
from barnabas.ids import random_uuid
from barnabas.metadata.difference import Difference
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import ConfigRecord, MetadataRecord, PartitionRecord, TopicRecord


class Recorder:
    """A follower that keeps what it was given and raises an error the first `failures` times."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.created: list[str] = []
        self.configs = 0
        self.calls = 0
        self.image = MetadataImage()

    def __call__(self, image: MetadataImage, difference: Difference) -> None:
        self.calls += 1
        if self.failures:
            self.failures -= 1
            raise RuntimeError("not now")
        self.image = image
        self.created += [topic.name for topic in difference.topics_created]
        self.configs += len(difference.configs_changed)


def topic(name: str) -> list[MetadataRecord]:
    topic_id = random_uuid()
    return [TopicRecord(name, topic_id), PartitionRecord(topic_id, 0, (1,), (1,), 1, 0)]


def publish(
    followers: MetadataFollowers, image: MetadataImage, records: list[MetadataRecord]
) -> MetadataImage:
    new, difference = image.apply_and_compare(records)
    followers.follow(image, new, difference)
    return new


def test_the_others_get_the_change_and_the_failed_one_gets_it_with_the_next() -> None:
    async def story() -> None:
        followers = MetadataFollowers(MetadataImage(), retry_seconds=1000)
        first, failing, last = Recorder(), Recorder(failures=1), Recorder()
        for name, follower in (("first", first), ("failing", failing), ("last", last)):
            followers.add(name, follower)
        image = publish(followers, MetadataImage(), topic("one"))
        assert (first.created, failing.created, last.created) == (["one"], [], ["one"])
        assert (followers.behind, followers.failures) == (["failing"], 1)
        image = publish(followers, image, [*topic("two"), ConfigRecord(4, "", "max.connections", "7")])
        assert failing.created == ["one", "two"]
        assert first.created == ["one", "two"]
        # It comes after the failed follower and may depend on it: it gets the first change once more.
        assert last.created == ["one", "one", "two"]
        assert (first.configs, failing.configs, last.configs) == (1, 1, 1)
        assert failing.image is image
        assert (followers.behind, followers.failures) == ([], 1)
        followers.close()

    asyncio.run(story())


def test_a_failed_follower_is_tried_again_without_another_change(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        followers = MetadataFollowers(MetadataImage(), retry_seconds=0.01)
        independent, failing, dependent = Recorder(), Recorder(failures=2), Recorder()
        followers.add("the independent part", independent)
        followers.add("the failing part", failing)
        followers.add("the dependent part", dependent)
        image = publish(followers, MetadataImage(), topic("one"))
        for _ in range(1000):
            if followers.behind:
                await asyncio.sleep(0.005)
        assert failing.created == ["one"]
        assert failing.image is image
        assert dependent.created == ["one", "one", "one"]
        assert independent.created == ["one"]
        followers.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert messages[1] == "the failing part could not take the metadata up to offset 2; next try in 0.02 s"
    assert messages[0] == "the failing part could not take the metadata up to offset 2; next try in 0.01 s"


def test_no_retry_after_closing() -> None:
    async def story() -> None:
        followers = MetadataFollowers(MetadataImage(), retry_seconds=0.01)
        failing = Recorder(failures=100)
        followers.add("the failing part", failing)
        publish(followers, MetadataImage(), topic("one"))
        followers.close()
        await asyncio.sleep(0.05)
        assert failing.calls == 1

    asyncio.run(story())
