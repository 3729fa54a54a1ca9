"""Answers to members of a classic group."""

from collections.abc import Iterable

from barnabas.errors import ErrorCode
from barnabas.groups.classic.members import Member
from barnabas.groups.classic.records import Generation
from barnabas.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.wire.messages.sync_group import SyncGroupResponse

# From this version on a missing protocol name is null; in older versions it is an empty string.
_NULL_PROTOCOL_FROM = 7


def join_refused(code: ErrorCode, member_id: str, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code, member_id=member_id, protocol_name=None if version >= _NULL_PROTOCOL_FROM else ""
    )


def joined(
    generation: Generation, member_id: str, members: Iterable[Member] = (), skip_assignment: bool = False
) -> JoinGroupResponse:
    """`members` is for the leader, which assigns their partitions; it is empty for everybody else."""
    return JoinGroupResponse(
        generation_id=generation.number,
        protocol_type=generation.protocol_type,
        protocol_name=generation.protocol_name,
        leader=generation.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(generation.protocol_name),
            )
            for member in members
        ],
    )


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)


def synced(generation: Generation, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=generation.protocol_type,
        protocol_name=generation.protocol_name,
        assignment=assignment,
    )
