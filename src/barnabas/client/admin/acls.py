"""Access control lists: create, find and delete them. The values are those of barnabas.security.acls."""

from collections.abc import Iterable
from typing import Protocol

from barnabas.client.admin.base import AdminBase, Call, outcome_of
from barnabas.client.errors import ErrorCode, KafkaError, error_from, raise_for
from barnabas.security.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType, member_of
from barnabas.wire.messages import create_acls, delete_acls, describe_acls

ALL = AclFilter()


class AclAdmin(AdminBase):
    def create_acls(self, acls: Iterable[Acl], *, timeout: float | None = None) -> None:
        """Add ACLs; one that exists already stays as it is.

        admin.create_acls([Acl(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*",
                               Operation.READ, Permission.ALLOW)])"""

        async def ask(left: list[Acl]) -> dict[Acl, KafkaError | None]:
            request = create_acls.CreateAclsRequest(creations=[_creation(acl) for acl in left])
            connection = await self._cluster.any()
            response = await connection.send(create_acls.API_KEY, request)
            # The results are in the order of the request. zip: a broker may answer too few.
            return {
                acl: outcome_of(result.error_code, result.error_message, None)
                for acl, result in zip(left, response.results, strict=False)
            }

        async def work(call: Call) -> None:
            await self._retry_items(call, acls, ask)

        self._run(timeout, work)

    def describe_acls(self, matching: AclFilter = ALL, *, timeout: float | None = None) -> list[Acl]:
        """The ACLs that a filter matches; all of them without one.

        admin.describe_acls(AclFilter(ResourceType.TOPIC, "orders", PatternType.MATCH))"""

        async def ask() -> list[Acl]:
            request = describe_acls.DescribeAclsRequest(
                resource_type_filter=matching.resource_type,
                resource_name_filter=matching.resource_name,
                pattern_type_filter=matching.pattern_type,
                principal_filter=matching.principal,
                host_filter=matching.host,
                operation=matching.operation,
                permission_type=matching.permission,
            )
            connection = await self._cluster.any()
            response = await connection.send(describe_acls.API_KEY, request)
            raise_for(response.error_code, response.error_message)
            return [
                _acl(resource.resource_type, resource.resource_name, resource.pattern_type, acl)
                for resource in response.resources
                for acl in resource.acls
            ]

        async def work(call: Call) -> list[Acl]:
            return await self._retry(call, ask)

        return self._run(timeout, work)

    def delete_acls(
        self, filters: Iterable[AclFilter], *, timeout: float | None = None
    ) -> dict[AclFilter, list[Acl]]:
        """Delete the ACLs that the filters match; returns the deleted ones of each filter."""

        async def ask(left: list[AclFilter]) -> dict[AclFilter, list[Acl] | KafkaError]:
            request = delete_acls.DeleteAclsRequest(filters=[_filter(each) for each in left])
            connection = await self._cluster.any()
            response = await connection.send(delete_acls.API_KEY, request)
            return {
                each: _deleted(result) for each, result in zip(left, response.filter_results, strict=False)
            }

        async def work(call: Call) -> dict[AclFilter, list[Acl]]:
            return await self._retry_items(call, filters, ask)

        return self._run(timeout, work)


class _Entry(Protocol):
    """What the answers to two APIs have in common."""

    principal: str
    host: str
    operation: int
    permission_type: int


def _creation(acl: Acl) -> create_acls.AclCreation:
    return create_acls.AclCreation(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        resource_pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def _filter(each: AclFilter) -> delete_acls.DeleteAclsFilter:
    return delete_acls.DeleteAclsFilter(
        resource_type_filter=each.resource_type,
        resource_name_filter=each.resource_name,
        pattern_type_filter=each.pattern_type,
        principal_filter=each.principal,
        host_filter=each.host,
        operation=each.operation,
        permission_type=each.permission,
    )


def _deleted(result: delete_acls.DeleteAclsFilterResult) -> list[Acl] | KafkaError:
    if result.error_code:
        return error_from(result.error_code, result.error_message)
    for acl in result.matching_acls:
        if acl.error_code:
            return error_from(acl.error_code, acl.error_message)
    return [_acl(acl.resource_type, acl.resource_name, acl.pattern_type, acl) for acl in result.matching_acls]


def _acl(resource_type: int, name: str, pattern_type: int, entry: _Entry) -> Acl:
    try:
        return Acl(
            member_of(ResourceType, resource_type),
            name,
            member_of(PatternType, pattern_type),
            entry.principal,
            entry.host,
            member_of(Operation, entry.operation),
            member_of(Permission, entry.permission_type),
        )
    except ValueError as error:
        # To leave it out would be wrong: somebody may have rights that are not shown.
        text = f"the broker has an ACL that this client does not know: {error}"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text) from None
