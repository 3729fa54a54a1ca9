"""SaslAuthenticate, key 36, versions 0-2: one step of a SASL exchange.

Behaviour: the steps of an authentication do not come here (broker/authentication.py). Before a handshake, and
on listeners without SASL: ILLEGAL_SASL_STATE.
Versions:  v1 session_lifetime_ms."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def sasl_authenticate(call: Call, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
