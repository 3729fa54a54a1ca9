"""Regular expressions, topics that are created and deleted, and who may commit offsets."""

from typing import Any

import pytest
from tests.support.consumer_group_story import GROUP, ConsumerGroupStory, FakeTopics

from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups import record_schemas as schemas
from barnabas.groups.consumer.group import State
from barnabas.groups.group import Committer
from barnabas.groups.records import GroupRecord, encode
from barnabas.groups.settings import GroupSettings
from barnabas.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic


def refused(code: ErrorCode) -> Any:
    return pytest.raises(KafkaError, check=lambda error: error.code is code)


# ---- regular expressions in a group


def test_members_read_what_their_expression_matches() -> None:
    story = ConsumerGroupStory(FakeTopics(log1=1, log2=1, other=1))
    story.join("a", [], subscribed_topic_regex="log.")
    assert story.owned("a") == {"log1": [0], "log2": [0]}
    assert story.group.is_subscribed_to("log1")


def test_a_new_topic_that_matches_is_assigned() -> None:
    story = ConsumerGroupStory(FakeTopics(log1=1))
    story.join("a", [], subscribed_topic_regex="log.")
    story.topics.create("log2", 1)
    story.topics.create("unrelated", 1)
    story.topics_changed()
    assert story.group.state is State.ASSIGNING
    story.settle()
    assert story.owned("a") == {"log1": [0], "log2": [0]}


def test_topics_without_subscribers_change_nothing() -> None:
    story = ConsumerGroupStory(FakeTopics(t=1))
    story.join("a", ["t"], subscribed_topic_regex="log.")
    written = len(story.journal)
    story.topics.create("unrelated", 1)
    story.topics_changed()
    assert len(story.journal) == written


def test_an_expression_is_forgotten_with_its_last_member() -> None:
    story = ConsumerGroupStory(FakeTopics(log1=2))
    story.join("a", [], subscribed_topic_regex="log.")
    story.join("b", [], subscribed_topic_regex="log.")
    story.leave("a")
    assert list(story.group.durable.regexes) == ["log."]
    story.beat("b", subscribed_topic_regex="", subscribed_topic_names=["log1"])
    assert not story.group.durable.regexes
    story.settle()
    assert story.owned("b") == {"log1": [0, 1]}


def test_expressions_are_resolved_again_from_time_to_time() -> None:
    story = ConsumerGroupStory(FakeTopics(log1=1), GroupSettings(consumer_regex_refresh_interval_ms=1_000))
    story.join("a", [], subscribed_topic_regex="log.")
    story.topics.create("log2", 1)
    story.pass_time(1_001)
    story.settle()
    assert story.owned("a") == {"log1": [0], "log2": [0]}


def test_an_invalid_expression_that_another_broker_accepted_keeps_its_topics() -> None:
    story = ConsumerGroupStory(FakeTopics(log1=1))
    story.join("a", [], subscribed_topic_regex="log.")
    for record in story.typed():
        if isinstance(record.value, schemas.ConsumerGroupMemberMetadataValue):
            record.value.subscribed_topic_regex = r"\pL+1"
            story.journal.append(encode(record))
    key = schemas.ConsumerGroupRegularExpressionKey(group_id=GROUP, regular_expression=r"\pL+1")
    value = schemas.ConsumerGroupRegularExpressionValue(topics=["log1"])
    story.journal.append(encode(GroupRecord(key, value)))
    story.fail_over()
    story.settle()
    assert story.owned("a") == {"log1": [0]}


# ---- topics


def test_more_partitions_are_assigned() -> None:
    story = ConsumerGroupStory(FakeTopics(t=1))
    story.join("a")
    story.topics.grow("t", 3)
    story.topics_changed()
    story.settle()
    assert story.owned("a") == {"t": [0, 1, 2]}


def test_a_topic_may_be_created_after_its_subscriber_joined() -> None:
    story = ConsumerGroupStory(FakeTopics())
    story.join("a", ["t"])
    story.topics.create("t", 1)
    story.topics_changed()
    story.settle()
    assert story.owned("a") == {"t": [0]}


def test_a_topic_that_is_created_again_is_another_topic() -> None:
    story = ConsumerGroupStory(FakeTopics(t=1))
    story.join("a")
    former = story.members["a"].owned
    story.topics.delete("t")
    story.topics.create("t", 1)
    story.topics_changed()
    story.settle()
    assert story.owned("a") == {"t": [0]}
    assert story.members["a"].owned != former


def test_topic_changes_are_noticed_when_a_group_is_loaded() -> None:
    story = ConsumerGroupStory(FakeTopics(t=1))
    story.join("a")
    story.topics.grow("t", 2)
    story.fail_over()
    story.settle()
    assert story.owned("a") == {"t": [0, 1]}


def test_the_topic_list_that_kafka_used_to_write_is_removed() -> None:
    story = ConsumerGroupStory(FakeTopics(t=1))
    story.join("a")
    key = schemas.ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    story.journal.append(encode(GroupRecord(key, schemas.ConsumerGroupPartitionMetadataValue())))
    story.fail_over()
    assert story.group.durable.has_partition_metadata
    story.join("b")
    assert not story.group.durable.has_partition_metadata


# ---- offsets


def committed(
    story: ConsumerGroupStory,
    member_id: str,
    epoch: int,
    version: int = 9,
    partitions: tuple[int, ...] = (0,),
) -> None:
    listed = [OffsetCommitRequestPartition(partition_index=number) for number in partitions]
    topics = [OffsetCommitRequestTopic(name="t", partitions=listed)]
    story.group.check_commit(Committer(member_id, None, epoch, topics), transactional=False, version=version)


def test_a_member_with_an_older_epoch_commits_partitions_it_has_had_since() -> None:
    story = ConsumerGroupStory(FakeTopics(t=2))
    story.join("a")
    story.join("b")
    story.settle()
    (kept,), (given,) = story.owned("a")["t"], story.owned("b")["t"]
    for _ in range(2):
        committed(story, "a", 2, partitions=(kept, given))
        committed(story, "a", 1, partitions=(kept,))
        for partitions in ((given,), (kept, given), (7,)):
            with refused(ErrorCode.STALE_MEMBER_EPOCH):
                committed(story, "a", 1, partitions=partitions)
        with refused(ErrorCode.STALE_MEMBER_EPOCH):
            committed(story, "a", 0, partitions=(kept,))
        with refused(ErrorCode.STALE_MEMBER_EPOCH):
            committed(story, "a", 3, partitions=(kept,))
        with refused(ErrorCode.STALE_MEMBER_EPOCH):
            committed(story, "b", 1, partitions=(given,))
        story.fail_over()


def test_a_partition_that_was_revoked_and_assigned_again_counts_from_then_on() -> None:
    story = ConsumerGroupStory(FakeTopics(t=2))
    story.join("a")
    story.join("b")
    story.settle()
    (given,) = story.owned("b")["t"]
    story.leave("b")
    story.settle()
    assert story.owned("a") == {"t": [0, 1]}
    epoch = story.group.durable.members["a"].epoch
    committed(story, "a", epoch, partitions=(given,))
    with refused(ErrorCode.STALE_MEMBER_EPOCH):
        committed(story, "a", 1, partitions=(given,))


def test_a_topic_that_is_created_again_is_not_the_one_the_member_had() -> None:
    story = ConsumerGroupStory(FakeTopics(t=1))
    story.join("a")
    story.join("b")
    story.settle()
    story.topics.delete("t")
    story.topics.create("t", 1)
    with refused(ErrorCode.STALE_MEMBER_EPOCH):
        committed(story, "a", 1)


def test_a_static_member_that_comes_back_has_its_partitions_from_the_beginning() -> None:
    story = ConsumerGroupStory(FakeTopics(t=1))
    story.join("a", instance_id="one")
    story.leave("a", epoch=-2)
    story.join("b", instance_id="one")
    assert story.owned("b") == {"t": [0]}
    committed(story, "b", 0)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        committed(story, "a", 1)


def test_a_producer_that_names_no_member_commits_at_any_time() -> None:
    """Clients before KIP-447 do that. An OffsetCommit without a member is refused."""
    story = ConsumerGroupStory(FakeTopics(t=1))
    story.join("a")
    story.group.check_commit(Committer(), transactional=True, version=2)
    for committer in (Committer("b"), Committer("", "static"), Committer("b", None, 1)):
        with refused(ErrorCode.UNKNOWN_MEMBER_ID):
            story.group.check_commit(committer, transactional=True, version=3)


def test_only_members_at_their_epoch_commit() -> None:
    story = ConsumerGroupStory(FakeTopics(t=1))
    story.join("a")
    committed(story, "a", 1)
    with refused(ErrorCode.STALE_MEMBER_EPOCH):
        committed(story, "a", 0)
    with refused(ErrorCode.STALE_MEMBER_EPOCH):
        committed(story, "a", 2)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        committed(story, "b", 1)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        committed(story, "", -1)
    with refused(ErrorCode.UNSUPPORTED_VERSION):
        committed(story, "a", 1, version=8)


def test_every_client_may_commit_to_an_empty_group() -> None:
    story = ConsumerGroupStory(FakeTopics(t=1))
    story.join("a")
    story.leave("a")
    committed(story, "", -1)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        committed(story, "a", 1)


def test_members_fetch_at_their_epoch_and_others_freely() -> None:
    story = ConsumerGroupStory(FakeTopics(t=1))
    story.join("a")
    story.group.check_fetch(None, -1)
    story.group.check_fetch("a", 1)
    with refused(ErrorCode.STALE_MEMBER_EPOCH):
        story.group.check_fetch("a", 0)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        story.group.check_fetch("b", 1)
