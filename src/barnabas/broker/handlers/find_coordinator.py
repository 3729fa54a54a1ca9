"""FindCoordinator, key 10, versions 0-6: who coordinates a group or a transaction.

Behaviour: there are no coordinators yet, so every key is answered with COORDINATOR_NOT_AVAILABLE, which
clients take for a cluster that is still starting. It is served all the same because librdkafka uses lz4
only with brokers that offer version 0 of it.
Versions:  v1 kinds of coordinator · v4 many keys at once (older ones are reshaped)."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP, TRANSACTION = 0, 1
SHARE = 2


def find_coordinator(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    known = request.key_type in (GROUP, TRANSACTION, SHARE)
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE if known else ErrorCode.INVALID_REQUEST
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=code.text)
            for key in request.coordinator_keys
        ]
    )
