"""DeleteAcls, key 31, versions 1-3: delete the ACLs that match filters, each with a result of its own.

Behaviour: without an authorizer every filter is refused with SECURITY_DISABLED. The answer has the deleted
ACLs; one that several filters select is in all their answers.
Not done:  Kafka closes the connection where a filter has an unknown type; here it is INVALID_REQUEST."""

from __future__ import annotations

from barnabas.broker.acl_messages import filter_of
from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.security.acls import Acl, AclFilter
from barnabas.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def delete_acls(call: Call, request: DeleteAclsRequest) -> Work[DeleteAclsResponse]:
    if not call.broker.authorizer.is_enabled:
        refused = _refused(KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured."))
        # One object for all: results have no names, the client tells them apart by their position.
        return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
    filters: list[AclFilter] = []
    places: list[int] = []
    results = [DeleteAclsFilterResult() for _ in request.filters]
    for place, message in enumerate(request.filters):
        try:
            filters.append(filter_of(message))
            places.append(place)
        except ValueError as error:
            results[place] = _refused(KafkaError(ErrorCode.INVALID_REQUEST, str(error)))
        yield
    try:
        outcomes = yield call.broker.controller.delete_acls(filters)
    except KafkaError as error:
        outcomes = [error] * len(filters)
    for place, outcome in zip(places, outcomes, strict=True):
        results[place] = (
            _refused(outcome) if isinstance(outcome, KafkaError) else (yield from _deleted(outcome))
        )
    return DeleteAclsResponse(filter_results=results)


def _deleted(acls: list[Acl]) -> Work[DeleteAclsFilterResult]:
    result = DeleteAclsFilterResult(error_message=None)
    for acl in acls:
        result.matching_acls.append(
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
        )
        yield
    return result


def _refused(error: KafkaError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=error.code, error_message=error.message)
