"""CreateAcls, key 30, versions 1-3: allow or deny operations, each with a result of its own.

Behaviour: without an authorizer every ACL is refused with SECURITY_DISABLED. An ACL that exists already is a
success. One that cannot exist (an empty name, a principal without a type, ANY where one value is needed) is
refused with INVALID_REQUEST, and the others are created.
Not done:  Kafka closes the connection where an ACL has an unknown type; here it is INVALID_REQUEST."""

from __future__ import annotations

from barnabas.broker.acl_messages import acl_of
from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.security.acls import Acl
from barnabas.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def create_acls(call: Call, request: CreateAclsRequest) -> Work[CreateAclsResponse]:
    if not call.broker.authorizer.is_enabled:
        refused = _refused(KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured."))
        # One object for all: results have no names, the client tells them apart by their position.
        return CreateAclsResponse(results=[refused] * len(request.creations))
    acls: list[Acl] = []
    places: list[int] = []
    results = [AclCreationResult(error_message=None)] * len(request.creations)
    for place, creation in enumerate(request.creations):
        try:
            acls.append(acl_of(creation))
            places.append(place)
        except ValueError as error:
            results[place] = _refused(KafkaError(ErrorCode.INVALID_REQUEST, str(error)))
        yield
    try:
        outcomes = yield call.broker.controller.create_acls(acls)
    except KafkaError as error:
        outcomes = [error] * len(acls)
    for place, outcome in zip(places, outcomes, strict=True):
        if outcome is not None:
            results[place] = _refused(outcome)
        yield
    return CreateAclsResponse(results=results)


def _refused(error: KafkaError) -> AclCreationResult:
    return AclCreationResult(error_code=error.code, error_message=error.message)
