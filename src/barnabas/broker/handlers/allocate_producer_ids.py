"""AllocateProducerIds, key 67, version 0: the controller gives a broker a block of producer ids.

Behaviour: only brokers send it, with their current broker epoch. No id is given out twice."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import KafkaError
from barnabas.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


async def allocate_producer_ids(
    call: Call, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    try:
        block = await call.broker.controller.allocate_producer_ids(request.broker_id, request.broker_epoch)
    except KafkaError as error:
        return AllocateProducerIdsResponse(error_code=error.code)
    return AllocateProducerIdsResponse(producer_id_start=block.first_id, producer_id_len=block.count)
