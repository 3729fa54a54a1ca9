"""InitProducerId, key 22, versions 0-5: an id and an epoch for an idempotent or transactional producer.

Behaviour: without a transactional id every request gets a new id with epoch 0. With a transactional id the
producer id stays the same, its epoch rises, and an open transaction is aborted first.
Versions:  v3 the current id and epoch, both or neither · v4 may answer PRODUCER_FENCED."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any

from barnabas.broker.call import Call
from barnabas.broker.shard_calls import call_shard
from barnabas.errors import ErrorCode, KafkaError
from barnabas.transactions.steps import NEEDS_PRODUCER_ID
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

logger = logging.getLogger(__name__)

NO_ID, NO_EPOCH = -1, -1


def init_producer_id(
    call: Call, request: InitProducerIdRequest
) -> InitProducerIdResponse | Coroutine[Any, Any, InitProducerIdResponse]:
    has_id, has_epoch = request.producer_id != NO_ID, request.producer_epoch != NO_EPOCH
    if has_id != has_epoch or request.transactional_id == "":
        return _refusal(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _begin_transactional(call, request, request.transactional_id)
    producer_id = call.broker.producer_ids.try_next()
    return _wait_for_block(call) if producer_id is None else _granted(producer_id)


async def _begin_transactional(
    call: Call, request: InitProducerIdRequest, transactional_id: str
) -> InitProducerIdResponse:
    while True:
        answer = await call_shard(
            lambda: call.broker.transactions.shard_of(transactional_id),
            lambda machine, waiter, now_ms: machine.init_producer_id(request, call.version, now_ms),
            _refusal,
        )
        if answer is not NEEDS_PRODUCER_ID:
            response: InitProducerIdResponse = answer
            return response
        try:
            await call.broker.producer_ids.refill()
        except KafkaError as error:
            return _no_block(error)


async def _wait_for_block(call: Call) -> InitProducerIdResponse:
    try:
        return _granted(await call.broker.producer_ids.next())
    except KafkaError as error:
        return _no_block(error)


def _no_block(error: KafkaError) -> InitProducerIdResponse:
    logger.warning("cannot allocate producer ids: %s", error)
    # Every client retries after this error; after the controller's own errors some give up.
    return _refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _granted(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_ID, producer_epoch=NO_EPOCH)
