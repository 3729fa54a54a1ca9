"""DescribeAcls, key 29, versions 1-3: which ACLs there are.

Behaviour: there is no authorizer, so every request is answered with SECURITY_DISABLED.
Not done:  the filter is not checked; Kafka closes the connection where it names an unknown type."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def describe_acls(call: Call, request: DescribeAclsRequest) -> DescribeAclsResponse:
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker"
    )
