"""RenewDelegationToken, key 39, versions 1-2: let a delegation token live longer.

Behaviour: the owner and the renewers of the token may do it (DELEGATION_TOKEN_OWNER_MISMATCH), under the
conditions of CreateDelegationToken. The token lives on for renew_period_ms, at most
delegation.token.expiry.time.ms, and never beyond its last time."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.handlers.create_delegation_token import NO_TIME
from barnabas.errors import KafkaError
from barnabas.metadata.tokens import renew_token
from barnabas.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


async def renew_delegation_token(
    call: Call, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    try:
        return RenewDelegationTokenResponse(expiry_timestamp_ms=await _renew(call, request))
    except KafkaError as error:
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME)


async def _renew(call: Call, request: RenewDelegationTokenRequest) -> int:
    broker, principal = call.broker, str(call.session.principal)
    token_id = broker.tokens.id_shown(call, bytes(request.hmac))
    period_ms: int = broker.config["delegation.token.expiry.time.ms"]
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    now_ms = broker.clock.now_ms()
    return await broker.controller.change_tokens(
        lambda image: renew_token(image, token_id, principal, now_ms, period_ms)
    )
