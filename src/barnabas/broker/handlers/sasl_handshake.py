"""SaslHandshake, key 17, versions 0-1: choose a SASL mechanism.

Behaviour: the first handshake of a connection does not come here (broker/authentication.py). Another one is
the beginning of a re-authentication (KIP-368), if the session has an end and the last re-authentication began
at least a second ago. Otherwise, and on listeners without SASL: ILLEGAL_SASL_STATE, no mechanisms."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def sasl_handshake(call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    authenticator = call.session.authenticator
    answer = None if authenticator is None else authenticator.begin_again(call, request)
    return answer or SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
