"""FindCoordinator, key 10, versions 0-6: who coordinates a group or a transaction.

Behaviour: the coordinator is the leader of the partition of the internal topic that the key falls on; the
topic is created on first use. COORDINATOR_NOT_AVAILABLE if that is not possible, or the partition has no
leader that the client can reach. Share groups have none here.
Versions:  v1 kinds of coordinator, an error message (on success "NONE" up to v3, as Kafka has it) · v4 many
           keys at once (older ones are reshaped)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.coordinators import Coordinator as Shards
from barnabas.broker.leaders import endpoints_of, leader_of
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

logger = logging.getLogger(__name__)

GROUP, TRANSACTION = 0, 1
MANY_KEYS_VERSION_MIN = 4


def find_coordinator(call: Call, request: FindCoordinatorRequest) -> Work[FindCoordinatorResponse]:
    try:
        shards = _kind(call, request.key_type)
    except KafkaError as error:
        code = error.code
        return (yield from _answered(request, lambda key: _refused(key, code)))
    try:
        yield shards.ensure_topic()
    except KafkaError as error:
        # Such as too few brokers for the replicas of the topic. Clients try again.
        logger.warning("cannot create %s: %s", shards.topic, error.message)
        return (yield from _answered(request, lambda key: _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)))
    return (yield from _answered(request, lambda key: _coordinator(call, shards, key)))


def _answered(
    request: FindCoordinatorRequest, answer: Callable[[str], Coordinator]
) -> Work[FindCoordinatorResponse]:
    """A key that is repeated is answered once."""
    response = FindCoordinatorResponse()
    for key in dict.fromkeys(request.coordinator_keys):
        response.coordinators.append(answer(key))
        yield
    return response


def _kind(call: Call, key_type: int) -> Shards[Any]:
    kinds: dict[int, Shards[Any]] = {GROUP: call.broker.groups, TRANSACTION: call.broker.transactions}
    if key_type not in kinds:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return kinds[key_type]


def _coordinator(call: Call, shards: Shards[Any], key: str) -> Coordinator:
    leader, _ = leader_of(call, shards.topic, shards.partition_of(key))
    for node, host, port, _ in endpoints_of(call, [leader]):
        message = "" if call.version >= MANY_KEYS_VERSION_MIN else ErrorCode.NONE.name
        return Coordinator(key=key, node_id=node, host=host, port=port, error_message=message)
    return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _refused(key: str, code: ErrorCode) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=code.text)
