"""Handlers see the newest form of a message: the old versions that need reshaping, and its result."""

from typing import Any

import pytest

from barnabas.wire.codec import (
    RequestHeader,
    WireError,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from barnabas.wire.message import Message
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


def request_through(key: int, version: int, message: Message) -> Any:
    frame: bytes = b"".join(encode_request(RequestHeader(key, version, 1, None), message))  # type: ignore[arg-type]
    return decode_request(frame[4:]).message


def response_through(key: int, version: int, message: Message) -> Any:
    frame: bytes = b"".join(encode_response(key, version, 1, message))  # type: ignore[arg-type]
    return decode_response(key, version, frame[4:])[1]


@pytest.mark.parametrize("version", range(1, 7))
def test_delete_topics(version: int) -> None:
    states = [DeleteTopicState(name="a"), DeleteTopicState(name="b")]
    assert request_through(20, version, DeleteTopicsRequest(topics=states)).topics == states


@pytest.mark.parametrize("version", range(7))
def test_find_coordinator(version: int) -> None:
    request = request_through(10, version, FindCoordinatorRequest(coordinator_keys=["group"]))
    assert request.coordinator_keys == ["group"]
    coordinator = Coordinator(key="group", node_id=4, host="h", port=9092, error_code=0, error_message=None)
    response = response_through(10, version, FindCoordinatorResponse(coordinators=[coordinator]))
    (back,) = response.coordinators
    assert (back.node_id, back.host, back.port, back.error_code) == (4, "h", 9092, 0)
    assert back.key == ("group" if version >= 4 else "")


def test_old_find_coordinator_has_room_for_one_key() -> None:
    with pytest.raises(WireError, match="one coordinator key"):
        request_through(10, 3, FindCoordinatorRequest(coordinator_keys=["a", "b"]))


@pytest.mark.parametrize("version", range(6))
def test_leave_group(version: int) -> None:
    request = request_through(
        13, version, LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")])
    )
    assert [member.member_id for member in request.members] == ["m"]
    answer = LeaveGroupResponse(members=[MemberResponse(member_id="m", error_code=25)])
    response = response_through(13, version, answer)
    assert [member.error_code for member in response.members] == [25]
    assert response.error_code == (0 if version >= 3 else 25)


def test_the_error_of_the_group_comes_before_that_of_a_member() -> None:
    answer = LeaveGroupResponse(error_code=16, members=[MemberResponse(member_id="m", error_code=25)])
    assert response_through(13, 1, answer).error_code == 16


@pytest.mark.parametrize("version", range(1, 10))
def test_offset_fetch_request(version: int) -> None:
    topics = [OffsetFetchRequestTopics(name="a", partition_indexes=[0, 3])]
    groups = [OffsetFetchRequestGroup(group_id="g", topics=topics)]
    assert request_through(9, version, OffsetFetchRequest(groups=groups)).groups == groups


@pytest.mark.parametrize("version", range(2, 10))
def test_offset_fetch_for_all_topics(version: int) -> None:
    groups = [OffsetFetchRequestGroup(group_id="g", topics=None)]
    assert request_through(9, version, OffsetFetchRequest(groups=groups)).groups == groups


@pytest.mark.parametrize("version", range(1, 10))
def test_offset_fetch_response(version: int) -> None:
    partition = OffsetFetchResponsePartitions(partition_index=3, committed_offset=9, metadata="x")
    topics = [OffsetFetchResponseTopics(name="a", partitions=[partition])]
    answer = OffsetFetchResponse(
        groups=[OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=16)]
    )
    (group,) = response_through(9, version, answer).groups
    (back,) = group.topics[0].partitions
    assert (group.topics[0].name, back.partition_index, back.committed_offset, back.metadata) == (
        "a",
        3,
        9,
        "x",
    )
    assert (group.error_code, back.error_code) == ((16, 0) if version >= 2 else (0, 16))
