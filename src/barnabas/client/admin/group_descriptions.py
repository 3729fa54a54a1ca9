"""Describes consumer groups of both protocols: state, members and their partitions.

The group is first requested as one with the consumer protocol (KIP-848). If it is not one, or if the broker
does not support the request, it is requested as a classic group."""

import struct
from collections.abc import Collection
from functools import partial
from typing import TypeVar

from barnabas.client.admin.base import AdminBase, Call
from barnabas.client.admin.types import ConsumerGroupDescription, MemberDescription
from barnabas.client.cluster import GROUP
from barnabas.client.errors import ErrorCode, KafkaError, error_from
from barnabas.client.types import NO_NODE, Node, TopicPartition
from barnabas.net.broker_connection import BrokerConnection
from barnabas.wire.codec import WireError, decode_message
from barnabas.wire.messages import consumer_group_describe, consumer_protocol_assignment, describe_groups

_NOT_NEW = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
_VERSION = struct.Struct(">h")
# The member types of the response: classic and consumer.
_UPGRADED = {0: False, 1: True}
_G = TypeVar("_G")


class GroupDescriptionAdmin(AdminBase):
    def describe_consumer_groups(
        self, groups: Collection[str], *, timeout: float | None = None
    ) -> dict[str, ConsumerGroupDescription]:
        """State, members and their partitions.

        for member in admin.describe_consumer_groups(["billing"])["billing"].members:
            print(member.client_id, sorted(member.assignment))"""

        async def attempt(left: list[str]) -> dict[str, ConsumerGroupDescription | KafkaError]:
            outcomes: dict[str, ConsumerGroupDescription | KafkaError] = {}
            for group in left:
                outcomes[group] = await self._ask_coordinator(GROUP, group, partial(self._describe, group))
            return outcomes

        async def work(call: Call) -> dict[str, ConsumerGroupDescription]:
            return await self._retry_items(call, groups, attempt)

        return self._run(timeout, work)

    async def _describe(self, group: str, connection: BrokerConnection) -> ConsumerGroupDescription:
        coordinator = self._cluster.coordinator_node(GROUP, group) or NO_NODE
        if connection.supports(consumer_group_describe.API_KEY):
            request = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[group])
            response = await connection.send(consumer_group_describe.API_KEY, request)
            described = _only(response.groups)
            if described.error_code not in _NOT_NEW:
                return _new(described, coordinator)
        classic = await connection.send(
            describe_groups.API_KEY, describe_groups.DescribeGroupsRequest(groups=[group])
        )
        return _classic(_only(classic.groups), coordinator)


def _only(groups: list[_G]) -> _G:
    if len(groups) != 1:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"expected 1 group in the answer, got {len(groups)}")
    return groups[0]


def _new(group: consumer_group_describe.DescribedGroup, coordinator: Node) -> ConsumerGroupDescription:
    if group.error_code:
        raise error_from(group.error_code, group.error_message)
    return ConsumerGroupDescription(
        group.group_id,
        "consumer",
        group.group_state,
        "consumer",
        group.assignor_name,
        tuple(_new_member(member) for member in group.members),
        coordinator,
        group.group_epoch,
        group.assignment_epoch,
    )


def _new_member(member: consumer_group_describe.Member) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _new_partitions(member.assignment),
        _new_partitions(member.target_assignment),
        member.member_epoch,
        member.rack_id,
        tuple(member.subscribed_topic_names),
        member.subscribed_topic_regex or None,
        _UPGRADED.get(member.member_type),
    )


def _new_partitions(assignment: consumer_group_describe.Assignment) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _classic(group: describe_groups.DescribedGroup, coordinator: Node) -> ConsumerGroupDescription:
    if group.error_code:
        raise error_from(group.error_code, group.error_message)
    if group.group_state == "Dead":
        # Before version 6, this is how brokers answer for a group that does not exist.
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    return ConsumerGroupDescription(
        group.group_id,
        "classic",
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        tuple(_classic_member(member, group.protocol_type) for member in group.members),
        coordinator,
    )


def _classic_member(member: describe_groups.DescribedGroupMember, protocol_type: str) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        classic_assignment(member.member_assignment) if protocol_type == "consumer" else frozenset(),
    )


def classic_assignment(data: bytes) -> frozenset[TopicPartition]:
    """The partitions in the bytes that the leader of a classic group gave a member."""
    if not data:
        return frozenset()
    kind = consumer_protocol_assignment.ConsumerProtocolAssignment
    try:
        (version,) = _VERSION.unpack_from(data)
        last = consumer_protocol_assignment.VERSIONS[1]
        assignment = decode_message(
            kind, min(max(version, 0), last), consumer_protocol_assignment.FLEXIBLE_FROM, memoryview(data)[2:]
        )
    except (WireError, struct.error) as error:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the assignment of a member cannot be decoded: {error}"
        ) from error
    return frozenset(
        TopicPartition(topic.topic, partition)
        for topic in assignment.assigned_partitions
        for partition in topic.partitions
    )
