"""ExpireDelegationToken, key 40, versions 1-2: let a delegation token end sooner.

Behaviour: the owner and the renewers of the token may do it (DELEGATION_TOKEN_OWNER_MISMATCH), under the
conditions of CreateDelegationToken. A negative period ends it at once."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.handlers.create_delegation_token import NO_TIME
from barnabas.errors import KafkaError
from barnabas.metadata.tokens import expire_token
from barnabas.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


async def expire_delegation_token(
    call: Call, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    try:
        return ExpireDelegationTokenResponse(expiry_timestamp_ms=await _expire(call, request))
    except KafkaError as error:
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME)


async def _expire(call: Call, request: ExpireDelegationTokenRequest) -> int:
    broker, principal = call.broker, str(call.session.principal)
    token_id = broker.tokens.id_shown(call, bytes(request.hmac))
    period_ms = request.expiry_time_period_ms
    now_ms = broker.clock.now_ms()
    return await broker.controller.change_tokens(
        lambda image: expire_token(image, token_id, principal, now_ms, period_ms)
    )
