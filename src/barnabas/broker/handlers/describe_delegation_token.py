"""DescribeDelegationToken, key 41, versions 1-3: the delegation tokens of some owners, or all.

Behaviour: everybody is anonymous on a PLAINTEXT listener: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def describe_delegation_token(
    call: Call, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
