"""A classic group in the journal: one record holds the whole group, written when a rebalance ends.

Everything else is in memory only: a rebalance that is running, protocols that were not chosen, parked
calls."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.coordination.step import JournalRecord
from barnabas.groups.classic.members import ClientInfo, Member, Protocol
from barnabas.groups.record_schemas import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from barnabas.groups.records import GroupRecord, encode, tombstone

CONSUMER = "consumer"


class Generation(NamedTuple):
    """What all members of one generation share."""

    number: int
    protocol_type: str
    protocol_name: str | None
    leader: str | None


def group_value(
    generation: Generation, members: Iterable[Member], assignments: Mapping[str, bytes], now_ms: int
) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type=generation.protocol_type,
        generation=generation.number,
        protocol=generation.protocol_name,
        leader=generation.leader,
        current_state_timestamp=now_ms,
        members=[
            MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client.id,
                client_host=member.client.host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(generation.protocol_name),
                assignment=assignments.get(member.id, b""),
            )
            for member in members
        ],
    )


def group_record(group_id: str, value: GroupMetadataValue) -> JournalRecord:
    return encode(GroupRecord(GroupMetadataKey(group=group_id), value))


def group_tombstone(group_id: str) -> JournalRecord:
    return tombstone(GroupMetadataKey(group=group_id))


def recorded_member(stored: MemberMetadata, protocol_name: str | None) -> Member:
    """The record has only the chosen one of its protocols. The others are known when it joins again."""
    timeout_ms = stored.rebalance_timeout
    return Member(
        id=stored.member_id,
        instance_id=stored.group_instance_id,
        client=ClientInfo(stored.client_id, stored.client_host),
        session_timeout_ms=stored.session_timeout,
        # Records of version 0 have one timeout for both.
        rebalance_timeout_ms=stored.session_timeout if timeout_ms < 0 else timeout_ms,
        protocols=(Protocol(protocol_name or "", bytes(stored.subscription)),),
        assignment=bytes(stored.assignment),
    )
