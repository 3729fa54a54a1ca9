"""DescribeDelegationToken, key 41, versions 1-3: the delegation tokens of some owners, or all.

Behaviour: null means all tokens, no owners mean none. A token is of its owner and of its renewers. Which of
them the client may see is decided by the table of rights. The other conditions are those of
CreateDelegationToken.
Versions:  v3 the requester of a token."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.metadata.records import DelegationTokenRecord
from barnabas.security.principal import parse_principal
from barnabas.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def describe_delegation_token(
    call: Call, request: DescribeDelegationTokenRequest
) -> Work[DescribeDelegationTokenResponse]:
    if not call.session.may_manage_tokens:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if not call.broker.tokens.is_enabled:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = {f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners}
    answer = DescribeDelegationTokenResponse()
    for token in list(call.broker.image.delegation_tokens.values()):
        yield
        if owners is None or not owners.isdisjoint((token.owner, *token.renewers)):
            answer.tokens.append(_described(token, call.broker.tokens.secret(token.id)))
    return answer


def _described(token: DelegationTokenRecord, secret: bytes) -> DescribedDelegationToken:
    owner, requester = parse_principal(token.owner), parse_principal(token.requester)
    renewers = map(parse_principal, token.renewers)
    return DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.ends_ms,
        token_id=token.id,
        hmac=secret,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=renewer.type, principal_name=renewer.name)
            for renewer in renewers
        ],
    )
