"""Envelope, key 58, version 0: a client's request that another broker forwards to the controller.

Behaviour: only registered brokers may send it, with their current epoch (CLUSTER_AUTHORIZATION_FAILED), and
only requests of the APIs in forwarding.py (INVALID_REQUEST). NOT_CONTROLLER if this broker is not the
controller, or stopped being it before all of the request was done: the sender asks the next controller. An
envelope is never forwarded again. forwarding.py describes the fields."""

from __future__ import annotations

import struct
from typing import Any

from barnabas.broker.call import ELEMENTS_MAX, Call
from barnabas.broker.forwarding import FORWARDED, OFFSET, SENDER, has_error
from barnabas.broker.turns import completed, run_in_turns
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.brokers import check_broker_epoch
from barnabas.wire.codec import (
    RequestHeader,
    WireError,
    decode_request_body_in_portions,
    decode_request_header,
    encode_response_in_portions,
)
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse


async def envelope(call: Call, request: EnvelopeRequest) -> EnvelopeResponse:
    try:
        _check_sender(call, request.request_principal)
        if not call.broker.controller.active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        header, message = await _unpacked(call, request.request_data)
        return await _answered(call, header, message)
    except KafkaError as error:
        return EnvelopeResponse(error_code=error.code)


def _check_sender(call: Call, sender: bytes | None) -> None:
    try:
        broker_id, broker_epoch = SENDER.unpack(sender or b"")
        check_broker_epoch(call.broker.image, broker_id, broker_epoch)
    except (struct.error, KafkaError) as error:
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED) from error


async def _unpacked(call: Call, data: bytes) -> tuple[RequestHeader, Any]:
    """The request in the envelope. It has the same limits as one that comes from a client directly."""
    try:
        header, reader = decode_request_header(data, ELEMENTS_MAX)
        row = call.broker.rows.get(header.api_key)
        if row is None or header.api_key not in FORWARDED:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        low, high = row.versions
        if not low <= header.api_version <= high:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        return header, await run_in_turns(decode_request_body_in_portions(header, reader))
    except WireError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST) from error


async def _answered(call: Call, header: RequestHeader, message: Any) -> EnvelopeResponse:
    broker = call.broker
    inner = Call(broker, call.connection, call.listener, header, is_forwarded=True)
    response = await completed(broker.rows[header.api_key].handler(inner, message))
    if has_error(response, ErrorCode.NOT_CONTROLLER):
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    offset = OFFSET.pack(broker.image.offset)
    encoding = encode_response_in_portions(
        header.api_key, header.api_version, header.correlation_id, response
    )
    chunks: list[Any] = await run_in_turns(encoding)
    # Without the size that a frame begins with: the sender writes it again.
    return EnvelopeResponse(response_data=offset + b"".join(chunks)[4:])
