"""Old shapes to the newest and back, for the four APIs whose messages changed their structure.

LIFT turns a message that was read into the newest form, LOWER fills the old fields from it before writing;
both change the given message. All other APIs need no reshaping: fields that a version does not have are read
as their defaults and not written.

DeleteTopics <= 5     names only                          -> topics with name or id
FindCoordinator <= 3  one key, one coordinator            -> a list of keys, a list of coordinators
LeaveGroup <= 2       one member, its error at the top    -> a list of members, an error each
OffsetFetch <= 7      one group, its fields at the top    -> a list of groups

AddPartitionsToTxn keeps both forms: clients use <= 3, brokers among themselves >= 4, and the responses
differ. OffsetCommit, OffsetFetch, Fetch and Produce have topic names in old versions and topic ids in new
ones; the handlers check which of the two is set."""

from collections.abc import Callable
from typing import Any

from barnabas.kernels.codec import WireError
from barnabas.wire.message import values_of
from barnabas.wire.messages import delete_topics, find_coordinator, leave_group, offset_fetch

# Changes a message in place; the version matters if an old form had several shapes.
Reshape = Callable[[Any, int], None]


def _only(items: list[Any], what: str) -> Any:
    """The only item; old forms have room for one."""
    if len(items) != 1:
        raise WireError(f"this version can have only one {what}, not {len(items)}")
    return items[0]


def _lift_delete_topics(request: Any, version: int) -> None:
    request.topics = [delete_topics.DeleteTopicState(name=name) for name in request.topic_names]


def _lower_delete_topics(request: Any, version: int) -> None:
    request.topic_names = [topic.name for topic in request.topics]


def _lift_find_coordinator(request: Any, version: int) -> None:
    request.coordinator_keys = [request.key]


def _lower_find_coordinator(request: Any, version: int) -> None:
    request.key = _only(request.coordinator_keys, "coordinator key")


_COORDINATOR_FIELDS = ("error_code", "error_message", "node_id", "host", "port")


def _lift_coordinator(response: Any, version: int) -> None:
    """The old response does not repeat its key: the key stays empty."""
    coordinator = find_coordinator.Coordinator()
    for name in _COORDINATOR_FIELDS:
        setattr(coordinator, name, getattr(response, name))
    response.coordinators = [coordinator]


def _lower_coordinator(response: Any, version: int) -> None:
    coordinator = _only(response.coordinators, "coordinator")
    for name in _COORDINATOR_FIELDS:
        setattr(response, name, getattr(coordinator, name))


def _lift_leave_group(request: Any, version: int) -> None:
    request.members = [leave_group.MemberIdentity(member_id=request.member_id)]


def _lower_leave_group(request: Any, version: int) -> None:
    request.member_id = _only(request.members, "member").member_id


def _lift_left_group(response: Any, version: int) -> None:
    response.members = [leave_group.MemberResponse(error_code=response.error_code)]


def _lower_left_group(response: Any, version: int) -> None:
    """The error of the group, or without one that of the only member."""
    if response.error_code == 0 and response.members:
        response.error_code = _only(response.members, "member").error_code


def _lift_offset_fetch(request: Any, version: int) -> None:
    topics = request.topics
    if topics is not None:
        topics = [
            offset_fetch.OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in topics
        ]
    request.groups = [offset_fetch.OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def _lower_offset_fetch(request: Any, version: int) -> None:
    group = _only(request.groups, "group")
    request.group_id = group.group_id
    # The structs of old and new topics have the same fields.
    request.topics = group.topics


def _lift_offsets(response: Any, version: int) -> None:
    """The old response does not name its group: the id stays empty."""
    topics = [
        offset_fetch.OffsetFetchResponseTopics(
            name=topic.name,
            partitions=[
                offset_fetch.OffsetFetchResponsePartitions(**values_of(partition))
                for partition in topic.partitions
            ],
        )
        for topic in response.topics
    ]
    response.groups = [offset_fetch.OffsetFetchResponseGroup(topics=topics, error_code=response.error_code)]


def _lower_offsets(response: Any, version: int) -> None:
    """Version 1 has no error for the whole group, so each partition gets it."""
    group = _only(response.groups, "group")
    response.topics = group.topics
    response.error_code = group.error_code
    if version < 2 and group.error_code != 0:
        for partition in (partition for topic in group.topics for partition in topic.partitions):
            partition.error_code = group.error_code


def rule_for(table: dict[int, tuple[int, Reshape]], api_key: int, version: int) -> Reshape | None:
    last_old_version, reshape = table.get(api_key, (-1, None))
    return reshape if version <= last_old_version else None


# API key: (last version of the old form, what to do).
LIFT_REQUEST: dict[int, tuple[int, Reshape]] = {
    delete_topics.API_KEY: (5, _lift_delete_topics),
    find_coordinator.API_KEY: (3, _lift_find_coordinator),
    leave_group.API_KEY: (2, _lift_leave_group),
    offset_fetch.API_KEY: (7, _lift_offset_fetch),
}
LOWER_REQUEST: dict[int, tuple[int, Reshape]] = {
    delete_topics.API_KEY: (5, _lower_delete_topics),
    find_coordinator.API_KEY: (3, _lower_find_coordinator),
    leave_group.API_KEY: (2, _lower_leave_group),
    offset_fetch.API_KEY: (7, _lower_offset_fetch),
}
LIFT_RESPONSE: dict[int, tuple[int, Reshape]] = {
    find_coordinator.API_KEY: (3, _lift_coordinator),
    leave_group.API_KEY: (2, _lift_left_group),
    offset_fetch.API_KEY: (7, _lift_offsets),
}
LOWER_RESPONSE: dict[int, tuple[int, Reshape]] = {
    find_coordinator.API_KEY: (3, _lower_coordinator),
    leave_group.API_KEY: (2, _lower_left_group),
    offset_fetch.API_KEY: (7, _lower_offsets),
}
