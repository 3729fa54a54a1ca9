"""Regular expressions, topics that come and go, and who may commit offsets."""

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
    told = ConsumerGroupStory(FakeTopics(log1=1, log2=1, other=1))
    told.join("a", [], subscribed_topic_regex="log.")
    assert told.owned("a") == {"log1": [0], "log2": [0]}
    assert told.group.is_subscribed_to("log1")


def test_a_new_topic_that_matches_is_assigned() -> None:
    told = ConsumerGroupStory(FakeTopics(log1=1))
    told.join("a", [], subscribed_topic_regex="log.")
    told.topics.create("log2", 1)
    told.topics.create("unrelated", 1)
    told.topics_changed()
    assert told.group.state is State.ASSIGNING
    told.settle()
    assert told.owned("a") == {"log1": [0], "log2": [0]}


def test_topics_nobody_asked_for_change_nothing() -> None:
    told = ConsumerGroupStory(FakeTopics(t=1))
    told.join("a", ["t"], subscribed_topic_regex="log.")
    written = len(told.journal)
    told.topics.create("unrelated", 1)
    told.topics_changed()
    assert len(told.journal) == written


def test_an_expression_is_forgotten_with_its_last_member() -> None:
    told = ConsumerGroupStory(FakeTopics(log1=2))
    told.join("a", [], subscribed_topic_regex="log.")
    told.join("b", [], subscribed_topic_regex="log.")
    told.leave("a")
    assert list(told.group.durable.regexes) == ["log."]
    told.beat("b", subscribed_topic_regex="", subscribed_topic_names=["log1"])
    assert not told.group.durable.regexes
    told.settle()
    assert told.owned("b") == {"log1": [0, 1]}


def test_expressions_are_resolved_anew_from_time_to_time() -> None:
    told = ConsumerGroupStory(FakeTopics(log1=1), GroupSettings(consumer_regex_refresh_interval_ms=1_000))
    told.join("a", [], subscribed_topic_regex="log.")
    told.topics.create("log2", 1)
    told.pass_time(1_001)
    told.settle()
    assert told.owned("a") == {"log1": [0], "log2": [0]}


def test_an_expression_of_another_broker_that_we_cannot_read_keeps_its_topics() -> None:
    told = ConsumerGroupStory(FakeTopics(log1=1))
    told.join("a", [], subscribed_topic_regex="log.")
    for record in told.typed():
        if isinstance(record.value, schemas.ConsumerGroupMemberMetadataValue):
            record.value.subscribed_topic_regex = r"\pL+1"
            told.journal.append(encode(record))
    key = schemas.ConsumerGroupRegularExpressionKey(group_id=GROUP, regular_expression=r"\pL+1")
    value = schemas.ConsumerGroupRegularExpressionValue(topics=["log1"])
    told.journal.append(encode(GroupRecord(key, value)))
    told.fail_over()
    told.settle()
    assert told.owned("a") == {"log1": [0]}


# ---- topics


def test_more_partitions_are_assigned() -> None:
    told = ConsumerGroupStory(FakeTopics(t=1))
    told.join("a")
    told.topics.grow("t", 3)
    told.topics_changed()
    told.settle()
    assert told.owned("a") == {"t": [0, 1, 2]}


def test_a_topic_may_come_after_its_subscriber() -> None:
    told = ConsumerGroupStory(FakeTopics())
    told.join("a", ["t"])
    told.topics.create("t", 1)
    told.topics_changed()
    told.settle()
    assert told.owned("a") == {"t": [0]}


def test_a_topic_made_anew_is_another_topic() -> None:
    told = ConsumerGroupStory(FakeTopics(t=1))
    told.join("a")
    former = told.members["a"].owned
    told.topics.delete("t")
    told.topics.create("t", 1)
    told.topics_changed()
    told.settle()
    assert told.owned("a") == {"t": [0]}
    assert told.members["a"].owned != former


def test_what_changed_while_no_broker_had_the_group_is_noticed() -> None:
    told = ConsumerGroupStory(FakeTopics(t=1))
    told.join("a")
    told.topics.grow("t", 2)
    told.fail_over()
    told.settle()
    assert told.owned("a") == {"t": [0, 1]}


def test_the_topic_list_that_kafka_used_to_write_is_removed() -> None:
    told = ConsumerGroupStory(FakeTopics(t=1))
    told.join("a")
    key = schemas.ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    told.journal.append(encode(GroupRecord(key, schemas.ConsumerGroupPartitionMetadataValue())))
    told.fail_over()
    assert told.group.durable.has_partition_metadata
    told.join("b")
    assert not told.group.durable.has_partition_metadata


# ---- offsets


def committed(
    told: ConsumerGroupStory, member_id: str, epoch: int, version: int = 9, partitions: tuple[int, ...] = (0,)
) -> None:
    listed = [OffsetCommitRequestPartition(partition_index=number) for number in partitions]
    topics = [OffsetCommitRequestTopic(name="t", partitions=listed)]
    told.group.check_commit(Committer(member_id, None, epoch, topics), transactional=False, version=version)


def test_a_member_behind_its_epoch_commits_what_it_has_had_since() -> None:
    told = ConsumerGroupStory(FakeTopics(t=2))
    told.join("a")
    told.join("b")
    told.settle()
    (kept,), (given,) = told.owned("a")["t"], told.owned("b")["t"]
    for _ in range(2):
        committed(told, "a", 2, partitions=(kept, given))
        committed(told, "a", 1, partitions=(kept,))
        for partitions in ((given,), (kept, given), (7,)):
            with refused(ErrorCode.STALE_MEMBER_EPOCH):
                committed(told, "a", 1, partitions=partitions)
        with refused(ErrorCode.STALE_MEMBER_EPOCH):
            committed(told, "a", 0, partitions=(kept,))
        with refused(ErrorCode.STALE_MEMBER_EPOCH):
            committed(told, "a", 3, partitions=(kept,))
        with refused(ErrorCode.STALE_MEMBER_EPOCH):
            committed(told, "b", 1, partitions=(given,))
        told.fail_over()


def test_a_partition_that_came_back_counts_from_then_on() -> None:
    told = ConsumerGroupStory(FakeTopics(t=2))
    told.join("a")
    told.join("b")
    told.settle()
    (given,) = told.owned("b")["t"]
    told.leave("b")
    told.settle()
    assert told.owned("a") == {"t": [0, 1]}
    epoch = told.group.durable.members["a"].epoch
    committed(told, "a", epoch, partitions=(given,))
    with refused(ErrorCode.STALE_MEMBER_EPOCH):
        committed(told, "a", 1, partitions=(given,))


def test_a_topic_made_anew_is_not_the_one_it_had() -> None:
    told = ConsumerGroupStory(FakeTopics(t=1))
    told.join("a")
    told.join("b")
    told.settle()
    told.topics.delete("t")
    told.topics.create("t", 1)
    with refused(ErrorCode.STALE_MEMBER_EPOCH):
        committed(told, "a", 1)


def test_a_static_member_that_comes_back_has_its_partitions_from_the_beginning() -> None:
    told = ConsumerGroupStory(FakeTopics(t=1))
    told.join("a", instance_id="one")
    told.leave("a", epoch=-2)
    told.join("b", instance_id="one")
    assert told.owned("b") == {"t": [0]}
    committed(told, "b", 0)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        committed(told, "a", 1)


def test_a_producer_that_says_nothing_of_the_group_commits_at_any_time() -> None:
    """As those before KIP-447 do; an OffsetCommit of that kind is refused."""
    told = ConsumerGroupStory(FakeTopics(t=1))
    told.join("a")
    told.group.check_commit(Committer(), transactional=True, version=2)
    for committer in (Committer("b"), Committer("", "static"), Committer("b", None, 1)):
        with refused(ErrorCode.UNKNOWN_MEMBER_ID):
            told.group.check_commit(committer, transactional=True, version=3)


def test_only_members_at_their_epoch_commit() -> None:
    told = ConsumerGroupStory(FakeTopics(t=1))
    told.join("a")
    committed(told, "a", 1)
    with refused(ErrorCode.STALE_MEMBER_EPOCH):
        committed(told, "a", 0)
    with refused(ErrorCode.STALE_MEMBER_EPOCH):
        committed(told, "a", 2)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        committed(told, "b", 1)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        committed(told, "", -1)
    with refused(ErrorCode.UNSUPPORTED_VERSION):
        committed(told, "a", 1, version=8)


def test_anybody_commits_to_an_empty_group() -> None:
    told = ConsumerGroupStory(FakeTopics(t=1))
    told.join("a")
    told.leave("a")
    committed(told, "", -1)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        committed(told, "a", 1)


def test_members_fetch_at_their_epoch_and_others_freely() -> None:
    told = ConsumerGroupStory(FakeTopics(t=1))
    told.join("a")
    told.group.check_fetch(None, -1)
    told.group.check_fetch("a", 1)
    with refused(ErrorCode.STALE_MEMBER_EPOCH):
        told.group.check_fetch("a", 0)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        told.group.check_fetch("b", 1)
