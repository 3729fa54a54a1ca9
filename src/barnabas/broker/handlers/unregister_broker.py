"""UnregisterBroker, key 64, version 0: remove a broker that is gone for good from the metadata.

Behaviour: a broker that is not registered is BROKER_ID_NOT_REGISTERED. A running broker is refused with
INVALID_REQUEST: Kafka removes it, and its partitions then have no leader."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.errors import ErrorCode, KafkaError
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def unregister_broker(call: Call, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    try:
        await _unregister(call, request.broker_id)
    except KafkaError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=error.message)
    return UnregisterBrokerResponse()


async def _unregister(call: Call, broker_id: int) -> None:
    image = call.broker.image
    if broker_id not in image.brokers:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered"
        )
    if image.alive(broker_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"broker {broker_id} is running and cannot be unregistered"
        )
    await call.broker.controller.unregister_broker(broker_id)
