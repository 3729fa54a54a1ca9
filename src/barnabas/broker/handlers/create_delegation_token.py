"""CreateDelegationToken, key 38, versions 1-3: a new delegation token.

Behaviour: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED for those who have not shown who they are, or have shown a
token; DELEGATION_TOKEN_AUTH_DISABLED without delegation.token.secret.key. The token lives as long as it is
renewed, up to max_lifetime_ms and delegation.token.max.lifetime.ms. Renewers must be users
(INVALID_PRINCIPAL_TYPE). A request in an envelope was checked by the broker that it came to.
Versions:  v3 tokens of other owners; what that needs is in the table of rights."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import random_uuid, uuid_to_string
from barnabas.metadata.records import DelegationTokenRecord
from barnabas.metadata.tokens import create_token, new_token
from barnabas.security.principal import USER, Principal
from barnabas.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

OWNER_VERSION_MIN = 3
RENEWERS_MAX = 1000
NO_TIME = -1


async def create_delegation_token(
    call: Call, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    requester = owner = call.session.principal
    if call.version >= OWNER_VERSION_MIN and request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    answer = CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )
    try:
        token = _token(call, request, owner)
        secret = call.broker.tokens.secret(token.id)
        await call.broker.controller.change_tokens(lambda image: create_token(image, token))
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    answer.token_id, answer.hmac = token.id, secret
    answer.issue_timestamp_ms = token.issued_ms
    answer.expiry_timestamp_ms = token.expires_ms
    answer.max_timestamp_ms = token.ends_ms
    return answer


def _token(call: Call, request: CreateDelegationTokenRequest, owner: Principal) -> DelegationTokenRecord:
    if not (call.is_forwarded or call.session.may_manage_tokens):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    renewers = [Principal(renewer.principal_type, renewer.principal_name) for renewer in request.renewers]
    if any(renewer.type != USER for renewer in renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    if not call.broker.tokens.is_enabled:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if owner.type != USER:
        # It would be another user's: a token logs in as a user.
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    if len(renewers) > RENEWERS_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    config = call.broker.config
    longest_ms = config["delegation.token.max.lifetime.ms"]
    if request.max_lifetime_ms > 0:
        longest_ms = min(longest_ms, request.max_lifetime_ms)
    people = (str(owner), str(call.session.principal), tuple(map(str, renewers)))
    lifetimes_ms = (longest_ms, config["delegation.token.expiry.time.ms"])
    return new_token(uuid_to_string(random_uuid()), people, call.broker.clock.now_ms(), lifetimes_ms)
