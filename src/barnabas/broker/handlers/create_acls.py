"""CreateAcls, key 30, versions 1-3: allow or deny operations, each with a result of its own.

Behaviour: there is no authorizer, so every ACL is refused with SECURITY_DISABLED.
Not done:  the ACLs are not checked; Kafka closes the connection where one has an unknown type."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def create_acls(call: Call, request: CreateAclsRequest) -> CreateAclsResponse:
    refused = AclCreationResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    # One object for all: results have no names, the client tells them apart by their position.
    return CreateAclsResponse(results=[refused] * len(request.creations))
