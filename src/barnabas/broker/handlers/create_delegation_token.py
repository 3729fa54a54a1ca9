"""CreateDelegationToken, key 38, versions 1-3: a token with which others act for a user.

Behaviour: a token belongs to an authenticated user, and on a PLAINTEXT listener everybody is anonymous:
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
Versions:  v3 tokens for another owner; the answer names the owner and the user who asked."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

# The user of a connection that did not authenticate.
USER_TYPE, ANONYMOUS = "User", "ANONYMOUS"
OWNER_VERSION_MIN = 3


def create_delegation_token(
    call: Call, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    owner_type, owner_name = USER_TYPE, ANONYMOUS
    if call.version >= OWNER_VERSION_MIN and request.owner_principal_name:
        owner_type, owner_name = request.owner_principal_type or "", request.owner_principal_name
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=USER_TYPE,
        token_requester_principal_name=ANONYMOUS,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
