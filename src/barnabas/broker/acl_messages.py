"""From the messages about ACLs to their values. ValueError for numbers that this release does not know: Kafka
closes the connection for some of them; here the request is refused as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.security.acls import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    member_of,
)

if TYPE_CHECKING:
    from barnabas.wire.messages.create_acls import AclCreation
    from barnabas.wire.messages.delete_acls import DeleteAclsFilter
    from barnabas.wire.messages.describe_acls import DescribeAclsRequest


def acl_of(creation: AclCreation) -> Acl:
    return Acl(
        member_of(ResourceType, creation.resource_type),
        creation.resource_name,
        member_of(PatternType, creation.resource_pattern_type),
        creation.principal,
        creation.host,
        member_of(Operation, creation.operation),
        member_of(Permission, creation.permission_type),
    )


def filter_of(message: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        member_of(ResourceType, message.resource_type_filter),
        message.resource_name_filter,
        member_of(PatternType, message.pattern_type_filter),
        message.principal_filter,
        message.host_filter,
        member_of(Operation, message.operation),
        member_of(Permission, message.permission_type),
    )
