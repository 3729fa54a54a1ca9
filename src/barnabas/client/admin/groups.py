"""Consumer groups: list, delete, remove members."""

import asyncio
from collections.abc import Collection
from functools import partial

from barnabas.client.admin.base import AdminBase, Call, outcome_of
from barnabas.client.admin.types import AdminError, ConsumerGroupListing, GroupListing
from barnabas.client.cluster import GROUP
from barnabas.client.errors import KafkaError, error_from, raise_for
from barnabas.net.broker_connection import BrokerConnection
from barnabas.wire.messages import delete_groups, describe_groups, leave_group, list_groups


class GroupAdmin(AdminBase):
    def list_consumer_groups(
        self,
        *,
        states: Collection[str] = (),
        types: Collection[str] = (),
        timeout: float | None = None,
    ) -> list[ConsumerGroupListing]:
        """The groups of all brokers: admin.list_consumer_groups(states=["Stable"], types=["consumer"])."""

        async def work(call: Call) -> list[ConsumerGroupListing]:
            return [
                ConsumerGroupListing(group.group_id, not group.protocol, group.state, group.type)
                for group in await self._list_groups(call, states, types)
                if group.is_of_consumers
            ]

        return self._run(timeout, work)

    def list_groups(
        self,
        *,
        states: Collection[str] = (),
        types: Collection[str] = (),
        timeout: float | None = None,
    ) -> list[GroupListing]:
        """As list_consumer_groups, also groups of Kafka Connect, share groups and others."""

        async def work(call: Call) -> list[GroupListing]:
            return await self._list_groups(call, states, types)

        return self._run(timeout, work)

    async def _list_groups(
        self, call: Call, states: Collection[str], types: Collection[str]
    ) -> list[GroupListing]:
        async def ask(node_id: int) -> list[GroupListing]:
            connection = await self._cluster.connection(node_id)
            request = list_groups.ListGroupsRequest(states_filter=list(states), types_filter=list(types))
            response = await connection.send(list_groups.API_KEY, request)
            raise_for(response.error_code)
            return [
                GroupListing(group.group_id, group.group_type.lower(), group.protocol_type, group.group_state)
                for group in response.groups
            ]

        async def ask_all() -> list[GroupListing]:
            answers = await asyncio.gather(*(ask(node_id) for node_id in await self._node_ids()))
            by_group = {listing.group_id: listing for answer in answers for listing in answer}
            return [by_group[group] for group in sorted(by_group)]

        return await self._retry(call, ask_all)

    def delete_consumer_groups(self, groups: Collection[str], *, timeout: float | None = None) -> None:
        """Delete groups that have no members, with their offsets."""

        async def ask(group: str, connection: BrokerConnection) -> KafkaError | None:
            request = delete_groups.DeleteGroupsRequest(groups_names=[group])
            response = await connection.send(delete_groups.API_KEY, request)
            codes = {result.group_id: result.error_code for result in response.results}
            return outcome_of(codes.get(group, -1), None, None)

        async def attempt(left: list[str]) -> dict[str, KafkaError | None]:
            return {group: await self._ask_coordinator(GROUP, group, partial(ask, group)) for group in left}

        async def work(call: Call) -> None:
            await self._retry_items(call, groups, attempt)

        self._run(timeout, work)

    def remove_members_from_consumer_group(
        self,
        group: str,
        instance_ids: Collection[str] | None = None,
        *,
        reason: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Remove these static members from a classic group, or all members (None).

        admin.remove_members_from_consumer_group("billing", ["worker-3"])"""

        async def members(connection: BrokerConnection) -> list[leave_group.MemberIdentity]:
            if instance_ids is not None:
                return [
                    leave_group.MemberIdentity(group_instance_id=name, reason=reason) for name in instance_ids
                ]
            request = describe_groups.DescribeGroupsRequest(groups=[group])
            response = await connection.send(describe_groups.API_KEY, request)
            described = response.groups[0]
            raise_for(described.error_code, described.error_message)
            return [
                leave_group.MemberIdentity(
                    member_id="" if member.group_instance_id else member.member_id,
                    group_instance_id=member.group_instance_id,
                    reason=reason,
                )
                for member in described.members
            ]

        async def ask(connection: BrokerConnection) -> leave_group.LeaveGroupResponse:
            request = leave_group.LeaveGroupRequest(group_id=group, members=await members(connection))
            response: leave_group.LeaveGroupResponse = await connection.send(leave_group.API_KEY, request)
            raise_for(response.error_code)
            return response

        async def attempt() -> leave_group.LeaveGroupResponse:
            outcome = await self._ask_coordinator(GROUP, group, ask)
            if isinstance(outcome, KafkaError):
                raise outcome
            return outcome

        async def work(call: Call) -> None:
            _check_left(await self._retry(call, attempt))

        self._run(timeout, work)


def _check_left(response: leave_group.LeaveGroupResponse) -> None:
    errors = {
        member.group_instance_id or member.member_id: error_from(member.error_code)
        for member in response.members
        if member.error_code
    }
    if errors:
        raise AdminError(errors, {})
