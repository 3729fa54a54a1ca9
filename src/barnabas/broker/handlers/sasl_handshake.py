"""SaslHandshake, key 17, versions 0-1: choose a SASL mechanism.

Behaviour: listeners are PLAINTEXT, where nobody authenticates: ILLEGAL_SASL_STATE, no mechanisms."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def sasl_handshake(call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
