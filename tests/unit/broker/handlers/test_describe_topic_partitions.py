"""How DescribeTopicPartitions pages through topics."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.metadata.records import BrokerRecord
from barnabas.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)


def ask(
    stage: Any, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> tuple[list[tuple[str, list[int]]], tuple[str, int] | None]:
    """Topics with their partitions, and the next cursor."""
    response = whole(stage, *names, limit=limit, cursor=cursor)
    following = response.next_cursor
    return (
        [(topic.name, [part.partition_index for part in topic.partitions]) for topic in response.topics],
        None if following is None else (following.topic_name, following.partition_index),
    )


def whole(stage: Any, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return stage.ask(request, 0)


@pytest.fixture
def topics(stage: Any) -> Any:
    stage.create("c", 1)
    stage.create("a", 2)
    stage.create("b", 3)
    return stage


def test_all_topics_in_the_order_of_their_names(topics: Any) -> None:
    assert ask(topics) == ([("a", [0, 1]), ("b", [0, 1, 2]), ("c", [0])], None)


def test_everything_about_a_partition(topics: Any) -> None:
    (topic,) = whole(topics, "c").topics
    assert (topic.error_code, topic.topic_id) == (ErrorCode.NONE, topics.image.topic("c").id)
    assert (topic.is_internal, topic.topic_authorized_operations) == (False, 0b110111111000)
    (part,) = topic.partitions
    assert (part.error_code, part.leader_id, part.leader_epoch) == (ErrorCode.NONE, 1, 0)
    assert (part.replica_nodes, part.isr_nodes, part.offline_replicas) == ([1], [1], [])
    assert (part.eligible_leader_replicas, part.last_known_elr) == ([], [])


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
def test_the_pages_together_have_every_partition_once(topics: Any, limit: int) -> None:
    seen: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    while True:
        page, cursor = ask(topics, limit=limit, cursor=cursor)
        partitions = [(name, index) for name, indexes in page for index in indexes]
        assert len(partitions) == limit or cursor is None
        seen += partitions
        if cursor is None:
            break
    assert seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


def test_the_broker_limits_a_page_too(make_stage: Any) -> None:
    stage = make_stage(max_request_partition_size_limit="2")
    stage.create("t", 5)
    assert ask(stage, limit=4) == ([("t", [0, 1])], ("t", 2))


def test_a_limit_that_is_not_positive_still_moves_on(topics: Any) -> None:
    assert ask(topics, limit=0) == ([("a", [0])], ("a", 1))


def test_topics_that_were_named_and_are_not_there(topics: Any) -> None:
    response = whole(topics, "gone", "no spaces", "a", "a")
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("a", ErrorCode.NONE),
        ("gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("no spaces", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


def test_a_cursor_at_a_deleted_topic_continues_with_the_next_topic(topics: Any) -> None:
    assert ask(topics, cursor=("aa", 7)) == ([("b", [0, 1, 2]), ("c", [0])], None)


def test_a_cursor_after_the_last_partition_continues_with_the_next_topic(topics: Any) -> None:
    assert ask(topics, "b", "c", cursor=("b", 9)) == ([("b", []), ("c", [0])], None)


@pytest.mark.parametrize("cursor", [("b", 0), ("a", -1)])
def test_an_invalid_cursor_is_refused(topics: Any, cursor: tuple[str, int]) -> None:
    response = whole(topics, "a", "c", cursor=cursor)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("c", ErrorCode.INVALID_REQUEST),
    ]


def test_a_leader_that_is_gone(topics: Any) -> None:
    me = topics.image.brokers[1]
    topics.write(BrokerRecord(1, me.epoch, me.incarnation, me.listeners, me.rack, fenced=True))
    (part,) = whole(topics, "c").topics[0].partitions
    assert (part.leader_id, part.offline_replicas) == (-1, [1])


def test_who_may_lead_a_partition_without_a_leader(topics: Any) -> None:
    topics.run(topics.controller.fence_broker(1))
    (part,) = whole(topics, "c").topics[0].partitions
    assert (part.leader_id, part.isr_nodes) == (-1, [])
    assert (part.eligible_leader_replicas, part.last_known_elr) == ([1], [1])


def test_internal_topics_are_marked(stage: Any) -> None:
    stage.create("__consumer_offsets")
    assert whole(stage).topics[0].is_internal
