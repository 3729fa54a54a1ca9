"""DescribeAcls, key 29, versions 1-3: which ACLs there are.

Behaviour: without an authorizer every request is answered with SECURITY_DISABLED. The answer has the ACLs
that the filter selects, by resource.
Not done:  Kafka closes the connection where the filter has an unknown type; here it is INVALID_REQUEST."""

from __future__ import annotations

from barnabas.broker.acl_messages import filter_of
from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def describe_acls(call: Call, request: DescribeAclsRequest) -> Work[DescribeAclsResponse]:
    if not call.broker.authorizer.is_enabled:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
        )
    try:
        wanted = filter_of(request)
    except ValueError as error:
        return DescribeAclsResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=str(error))
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in call.broker.image.acls.values():
        yield
        if not wanted.matches(acl):
            continue
        key = (acl.resource_type, acl.resource_name, acl.pattern_type)
        if key not in resources:
            resources[key] = DescribeAclsResource(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
            )
        resources[key].acls.append(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
        )
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))
