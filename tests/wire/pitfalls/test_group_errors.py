"""Pitfalls 9, 11, 24: errors, in the order in which Apache Kafka checks."""

import uuid

import pytest
from tests.clients.client import wait_until
from tests.support.raw_calls import new_topic
from tests.support.raw_client import RawClient
from tests.support.raw_groups import JOIN_GROUP, RawGroup

from barnabas.errors import ErrorCode
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

OFFSET_DELETE, CONSUMER_GROUP_DESCRIBE = 47, 69


def group_on(client: RawClient) -> RawGroup:
    group = RawGroup(client, f"errors-{uuid.uuid4().hex}")
    group.find()
    return group


@pytest.mark.parametrize("member", ["", "somebody"])
def test_9_a_session_timeout_out_of_bounds_is_the_first_error(client: RawClient, member: str) -> None:
    group = group_on(client)
    request = group.join_request(member)
    request.session_timeout_ms = 1
    assert client.call(JOIN_GROUP, 9, request).error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_11_offsets_of_unknown_topics_are_not_deleted(client: RawClient) -> None:
    topic, group = new_topic(client, partitions=2), group_on(client)
    wait_until(lambda: group.commit(topic, 5) == 0, "the topic is known")

    def delete(group_id: str, *places: tuple[str, int]) -> tuple[int, dict[tuple[str, int], int]]:
        topics = [
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=number)]
            )
            for name, number in places
        ]
        answer = client.call(OFFSET_DELETE, 0, OffsetDeleteRequest(group_id=group_id, topics=topics))
        codes = {
            (topic.name, part.partition_index): part.error_code
            for topic in answer.topics
            for part in topic.partitions
        }
        return answer.error_code, codes

    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(group.name, (topic.name, 7)) == (0, {(topic.name, 7): missing})
    assert delete(group.name, ("no-such-topic", 0)) == (0, {("no-such-topic", 0): missing})
    assert delete("no-such-group", (topic.name, 7)) == (ErrorCode.GROUP_ID_NOT_FOUND, {})
    assert delete("", (topic.name, 0)) == (ErrorCode.INVALID_GROUP_ID, {})
    assert group.fetch(topic).committed_offset == 5
    places = ((topic.name, 0), ("no-such-topic", 0))
    assert delete(group.name, *places) == (0, {places[0]: 0, places[1]: missing})
    assert group.fetch(topic).committed_offset == -1


def test_24_a_group_without_a_name_is_not_described(client: RawClient) -> None:
    group_on(client)
    request = ConsumerGroupDescribeRequest(group_ids=["", "no-such-group"])
    groups = client.call(CONSUMER_GROUP_DESCRIBE, 1, request).groups
    assert {group.group_id: group.error_code for group in groups} == {
        "": ErrorCode.INVALID_GROUP_ID,
        "no-such-group": ErrorCode.GROUP_ID_NOT_FOUND,
    }
