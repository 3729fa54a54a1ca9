"""DeleteAcls, key 31, versions 1-3: delete the ACLs that match filters, each with a result of its own.

Behaviour: there is no authorizer, so every filter is refused with SECURITY_DISABLED.
Not done:  the filters are not checked; Kafka closes the connection where one names an unknown type."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


def delete_acls(call: Call, request: DeleteAclsRequest) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    # One object for all: results have no names, the client tells them apart by their position.
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
