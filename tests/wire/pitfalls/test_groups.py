"""Pitfalls 9, 10, 11, 19, 24: consumer groups on the wire, for old and new clients."""

import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.raw_calls import Topic, new_topic
from tests.support.raw_client import RawClient
from tests.support.raw_groups import JOIN_GROUP, OFFSET_FETCH, SUBSCRIPTION, RawGroup

from barnabas.errors import ErrorCode
from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

API_VERSIONS, FIND_COORDINATOR, LIST_GROUPS, CONSUMER_GROUP_HEARTBEAT = 18, 10, 16, 68
GROUP, TRANSACTION, SHARE = range(3)
JOIN_VERSIONS = range(10)
# KIP-932, the streams protocol, and telemetry: clients repeat requests forever if it is incomplete.
SHARE_GROUP_APIS = (76, 77, 78, 79)
NOT_OFFERED = (71, 72, *SHARE_GROUP_APIS, 88, 89)


def group_on(client: RawClient) -> RawGroup:
    group = RawGroup(client, f"group-{uuid.uuid4().hex}")
    group.find()
    return group


@pytest.fixture
def group(client: RawClient) -> RawGroup:
    return group_on(client)


# ---- 9: joining


@pytest.mark.parametrize("version", range(4, 10))
def test_9_a_new_member_gets_an_id_and_joins_with_it(group: RawGroup, version: int) -> None:
    first = group.join("", version)
    assert (first.error_code, first.generation_id) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
    assert first.member_id.startswith("raw-client-")
    second = group.join(first.member_id, version)
    assert (second.error_code, second.member_id, second.leader) == (0, first.member_id, first.member_id)
    assert second.generation_id == 1


@pytest.mark.parametrize("version", range(4))
def test_9_an_old_client_joins_in_one_step(group: RawGroup, version: int) -> None:
    answer = group.join("", version)
    assert (answer.error_code, answer.generation_id) == (0, 1)
    assert answer.leader == answer.member_id


@pytest.mark.parametrize("version", range(5, 10))
def test_9_a_static_member_joins_in_one_step(group: RawGroup, version: int) -> None:
    answer = group.join("", version, instance="by name")
    assert (answer.error_code, answer.generation_id) == (0, 1)
    assert answer.members[0].group_instance_id == "by name"


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_9_the_leader_gets_all_members_and_the_protocol(group: RawGroup, version: int) -> None:
    answer = group.joined(version)
    assert [(member.member_id, member.metadata) for member in answer.members] == [
        (answer.member_id, SUBSCRIPTION)
    ]
    assert answer.protocol_name == "range"
    assert answer.protocol_type == ("consumer" if version >= 7 else None)
    assert answer.skip_assignment is False


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_9_assignments_arrive_as_they_were_sent(
    group: RawGroup, connect: Callable[[], RawClient], version: int
) -> None:
    """Any bytes: the broker does not read what members send to each other."""
    leader = group.joined(version)
    follower = RawGroup(connect(), group.name)
    member = "" if version < 4 else follower.join("", version).member_id
    follower.client.send(JOIN_GROUP, version, follower.join_request(member))
    while group.heartbeat(leader) != ErrorCode.REBALANCE_IN_PROGRESS:
        time.sleep(0.01)
    leader = group.join(leader.member_id, version)
    _, following = follower.client.receive(JOIN_GROUP, version)
    assert (following.error_code, following.members, following.leader) == (0, [], leader.leader)
    assert following.generation_id == leader.generation_id == 2
    assert {each.member_id for each in leader.members} == {leader.member_id, following.member_id}
    plans = {leader.member_id: bytes(range(256)) * 50, following.member_id: b""}
    sync_version = min(version, 5)
    assert group.sync(leader, plans, sync_version).assignment == plans[leader.member_id]
    answer = follower.sync(following, version=sync_version)
    assert (answer.error_code, answer.assignment) == (0, b"")
    assert group.heartbeat(leader) == follower.heartbeat(following) == 0


def test_9_sync_checks_its_fields(group: RawGroup) -> None:
    joined = group.joined()
    right = joined.generation_id, joined.protocol_name
    joined.generation_id = 7
    assert group.sync(joined).error_code == ErrorCode.ILLEGAL_GENERATION
    joined.generation_id, joined.protocol_name = right[0], "roundrobin"
    assert group.sync(joined).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    joined.protocol_name = right[1]
    assert group.sync(joined, {joined.member_id: b"mine"}).assignment == b"mine"
    joined.member_id = "nobody"
    assert group.sync(joined).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_9_no_common_protocol_and_no_fitting_timeout_are_refused(
    group: RawGroup, connect: Callable[[], RawClient]
) -> None:
    group.joined()
    incompatible = group.join_request(protocols=("roundrobin",))
    other = connect()
    assert other.call(JOIN_GROUP, 3, incompatible).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    hasty = group.join_request()
    hasty.session_timeout_ms = 5
    assert other.call(JOIN_GROUP, 3, hasty).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    nameless = group.join_request()
    nameless.group_id = ""
    assert other.call(JOIN_GROUP, 3, nameless).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(6))
def test_9_leaving_is_answered_in_every_version(group: RawGroup, version: int) -> None:
    joined = group.joined()
    answer = group.leave(joined.member_id, version=version)
    assert answer.error_code == 0
    if version >= 3:
        assert [(each.member_id, each.error_code) for each in answer.members] == [(joined.member_id, 0)]
    assert group.heartbeat(joined) == ErrorCode.UNKNOWN_MEMBER_ID
    again = group.leave(joined.member_id, version=version)
    code = again.members[0].error_code if version >= 3 else again.error_code
    assert code == ErrorCode.UNKNOWN_MEMBER_ID


# ---- 10: the initial delay


def test_10_a_broker_for_tests_starts_its_groups_without_a_delay(group: RawGroup) -> None:
    started = time.monotonic()
    assert group.joined().error_code == 0
    assert time.monotonic() - started < 2.5


def test_10_the_initial_delay_lets_members_come_together() -> None:
    with Broker({"group.initial.rebalance.delay.ms": "700"}) as broker:
        clients = [RawClient("127.0.0.1", broker.port) for _ in range(2)]
        try:
            groups = [RawGroup(client, "delayed") for client in clients]
            groups[0].find()
            for group in groups:
                group.client.send(JOIN_GROUP, 3, group.join_request())
            answers = [client.receive(JOIN_GROUP, 3)[1] for client in clients]
            assert [answer.generation_id for answer in answers] == [1, 1]
            assert sorted(len(answer.members) for answer in answers) == [0, 2]
        finally:
            for client in clients:
                client.close()


# ---- 11: offsets


@pytest.mark.parametrize("version", range(1, 11))
def test_11_an_offset_that_was_never_committed_is_minus_one_without_an_error(
    client: RawClient, group: RawGroup, version: int
) -> None:
    fetched = group.fetch(new_topic(client), version)
    assert (fetched.committed_offset, fetched.metadata, fetched.error_code) == (-1, "", 0)
    assert fetched.committed_leader_epoch == -1


@pytest.mark.parametrize("commit_version", range(2, 11))
@pytest.mark.parametrize("fetch_version", [1, 5, 7, 8, 9, 10])
def test_11_offset_epoch_and_metadata_are_returned(
    client: RawClient, group: RawGroup, commit_version: int, fetch_version: int
) -> None:
    topic = new_topic(client)
    assert group.commit(topic, 42, "ünïcode 鍵", commit_version) == 0
    fetched = group.fetch(topic, fetch_version)
    assert (fetched.committed_offset, fetched.metadata, fetched.error_code) == (42, "ünïcode 鍵", 0)
    knows_epoch = commit_version >= 6 and fetch_version >= 5
    assert fetched.committed_leader_epoch == (0 if knows_epoch else -1)


def test_11_null_metadata_is_returned_as_empty(client: RawClient, group: RawGroup) -> None:
    topic = new_topic(client)
    assert group.commit(topic, 1, None) == 0
    assert group.fetch(topic).metadata == ""


@pytest.mark.parametrize("version", range(2, 8))
def test_11_null_topics_are_all_topics(client: RawClient, group: RawGroup, version: int) -> None:
    topics = [new_topic(client) for _ in range(3)]
    for topic in topics[:2]:
        group.commit(topic, 5)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group.name, topics=None)])
    (answer,) = client.call(OFFSET_FETCH, version, request).groups
    assert {topic.name for topic in answer.topics} == {topic.name for topic in topics[:2]}


@pytest.mark.parametrize("version", range(8, 11))
def test_11_every_group_of_a_request_has_its_own_answer(client: RawClient, version: int) -> None:
    topic = new_topic(client)
    groups = [group_on(client) for _ in range(3)]
    for offset, group in enumerate(groups[:2]):
        group.commit(topic, offset)
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group.name, topics=None) for group in groups]
    )
    answers = {group.group_id: group for group in client.call(OFFSET_FETCH, version, request).groups}
    assert [answers[group.name].error_code for group in groups] == [0, 0, 0]
    offsets = [
        [part.committed_offset for topic in answers[group.name].topics for part in topic.partitions]
        for group in groups
    ]
    assert offsets == [[0], [1], []]


def test_11_commits_of_members_are_checked(client: RawClient, group: RawGroup) -> None:
    topic = new_topic(client)
    joined = group.joined()
    group.sync(joined, {joined.member_id: b""})

    def commit(generation: int, member: str) -> int:
        return group.commit(topic, 9, generation_id_or_member_epoch=generation, member_id=member)

    assert commit(-1, "") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(1, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(7, joined.member_id) == ErrorCode.ILLEGAL_GENERATION
    assert group.fetch(topic).committed_offset == -1
    assert commit(1, joined.member_id) == 0
    assert group.fetch(topic).committed_offset == 9


def test_11_commits_for_unknown_topics_are_refused(group: RawGroup) -> None:
    absent = Topic("absent", bytes(15) + b"\x07")
    assert group.commit(absent, 1, version=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert group.commit(absent, 1, version=10) == ErrorCode.UNKNOWN_TOPIC_ID


# ---- 19: coordinators


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_19_a_coordinator_is_found(client: RawClient, broker: Broker, version: int, kind: int) -> None:
    keys = ["first", "second"] if version >= 4 else ["first"]
    request = FindCoordinatorRequest(key_type=kind if version else GROUP, coordinator_keys=keys)
    answers: Any = []
    for _ in range(100):
        answers = client.call(FIND_COORDINATOR, version, request).coordinators
        if not any(answer.error_code for answer in answers):
            break
        assert {answer.error_code for answer in answers} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
        time.sleep(0.05)
    assert [(answer.host, answer.port) for answer in answers] == [("127.0.0.1", broker.port)] * len(keys)
    if version >= 4:
        assert [answer.key for answer in answers] == keys


def test_19_other_kinds_of_coordinators_are_refused(client: RawClient) -> None:
    request = FindCoordinatorRequest(key_type=9, coordinator_keys=["x"])
    (answer,) = client.call(FIND_COORDINATOR, 6, request).coordinators
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(6))
def test_19_every_group_is_listed_once(client: RawClient, version: int) -> None:
    groups = [group_on(client) for _ in range(4)]
    for group in groups:
        assert group.joined(3).error_code == 0
    listed = [each.group_id for each in client.call(LIST_GROUPS, version, ListGroupsRequest()).groups]
    assert all(listed.count(group.name) == 1 for group in groups)


@pytest.mark.parametrize("states", [["Stable"], [" STABLE ", "Dead"], ["nonsense"]])
def test_19_filters_take_upper_and_lower_case(client: RawClient, states: list[str]) -> None:
    group = group_on(client)
    joined = group.joined()
    group.sync(joined, {joined.member_id: b"assigned"})
    request = ListGroupsRequest(states_filter=states, types_filter=["CLASSIC"])
    listed = [each.group_id for each in client.call(LIST_GROUPS, 5, request).groups]
    assert (group.name in listed) == (states != ["nonsense"])


# ---- 24: the new protocol


@pytest.mark.parametrize("version", range(5))
def test_24_incomplete_apis_are_not_offered(client: RawClient, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    response = client.call(API_VERSIONS, version, request)
    offered = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert not offered.keys() & set(NOT_OFFERED)
    # KIP-848 needs these: librdkafka uses it from version 1 of the heartbeat on.
    assert offered[CONSUMER_GROUP_HEARTBEAT][1] >= 1
    assert 69 in offered
    assert offered[8][1] >= 9
    assert offered[9][1] >= 9
    if version >= 3:
        features = {feature.name: feature.max_version_level for feature in response.finalized_features}
        assert features["group.version"] == 1
        assert not features.keys() & {"share.version", "streams.version"}


@pytest.mark.parametrize("key", NOT_OFFERED)
def test_24_apis_that_are_not_offered_close_the_connection(
    connect: Callable[[], RawClient], key: int
) -> None:
    client = connect()
    version = 1 if key in SHARE_GROUP_APIS else 0
    client.send_bytes(b"\0\0\0\x40" + key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(60))
    assert client.is_closed_by_peer()


@pytest.mark.parametrize("version", [0, 1])
def test_24_a_member_is_assigned_by_the_broker(client: RawClient, group: RawGroup, version: int) -> None:
    topic = new_topic(client, partitions=3)
    member = f"member {version}" if version else ""

    def beat(epoch: int, member: str, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group.name, member_id=member, member_epoch=epoch, topic_partitions=None, **fields
        )
        return client.call(CONSUMER_GROUP_HEARTBEAT, version, request)

    first_request = ConsumerGroupHeartbeatRequest(
        group_id=group.name,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[topic.name],
        topic_partitions=[],
    )
    first = client.call(CONSUMER_GROUP_HEARTBEAT, version, first_request)
    assert first.error_code == 0
    assert first.member_epoch > 0
    member = first.member_id
    assert first.assignment is not None
    (assigned,) = first.assignment.topic_partitions
    assert (assigned.topic_id, sorted(assigned.partitions)) == (topic.id, [0, 1, 2])
    assert beat(first.member_epoch, member).error_code == 0
    assert beat(first.member_epoch + 5, member).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert beat(first.member_epoch, "nobody").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    # A classic commit of an unknown member is refused as in a classic group.
    assert group.commit(topic, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    stale = group.commit(
        topic, 1, version=9, member_id=member, generation_id_or_member_epoch=first.member_epoch - 1
    )
    assert stale == ErrorCode.STALE_MEMBER_EPOCH
    assert beat(-1, member).error_code == 0
    assert beat(first.member_epoch, member).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_11_an_unknown_topic_id_is_refused_and_the_rest_is_answered(
    client: RawClient, group: RawGroup
) -> None:
    topic, gone = new_topic(client), b"\x07" * 16
    assert group.commit(topic, 5, version=10) == 0
    requested = [
        OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0]) for topic_id in (gone, topic.id)
    ]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group.name, topics=requested)])
    answers = {
        answered.topic_id: (answered.partitions[0].error_code, answered.partitions[0].committed_offset)
        for answered in client.call(OFFSET_FETCH, 10, request).groups[0].topics
    }
    assert answers == {gone: (ErrorCode.UNKNOWN_TOPIC_ID, -1), topic.id: (0, 5)}
