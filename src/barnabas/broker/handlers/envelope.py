"""Envelope, key 58, version 0: a client's request that another broker forwards to the controller.

Behaviour: only registered brokers may send it, with their current epoch (CLUSTER_AUTHORIZATION_FAILED), and
only requests of the APIs in forwarding.py, with at most the size that is given there (INVALID_REQUEST). A
broker that is not the controller relays the envelope to it, once; BROKER_NOT_AVAILABLE if it cannot reach the
controller either. NOT_CONTROLLER if this broker stopped being the controller before all of the request was
done, or got an envelope that was relayed already: the sender asks the next controller. forwarding.py
describes the fields."""

from __future__ import annotations

import socket
from typing import Any

from barnabas.broker.call import ELEMENTS_MAX, SHORT_ELEMENTS_MAX, Call
from barnabas.broker.forwarding import (
    FORWARDED,
    FORWARDED_BYTES_MAX,
    OFFSET,
    RELAYED,
    Sender,
    has_error,
)
from barnabas.broker.session import Session
from barnabas.broker.turns import Work, completed
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.brokers import check_broker_epoch
from barnabas.wire.codec import (
    RequestHeader,
    TooManyElements,
    WireError,
    decode_request_body_in_portions,
    decode_request_header,
    encode_response_in_portions,
)
from barnabas.wire.message import Message
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse


def envelope(call: Call, request: EnvelopeRequest) -> Work[EnvelopeResponse]:
    try:
        sender = _checked_sender(call, request.request_principal)
        if not call.broker.controller.active:
            if sender.is_relayed:
                raise KafkaError(ErrorCode.NOT_CONTROLLER)
            answer: EnvelopeResponse = yield call.broker.controller_channel.relay(request)
            return answer
        header = _checked_header(call, request.request_data)
        client = _client(call, sender, request.client_host_address)
        return (yield from _answered(call, client, header, request.request_data))
    except KafkaError as error:
        return EnvelopeResponse(error_code=error.code)


def _checked_sender(call: Call, data: bytes | None) -> Sender:
    try:
        sender = Sender.from_bytes(data or b"")
        check_broker_epoch(call.broker.image, sender.broker_id, sender.broker_epoch)
        return sender
    except (ValueError, KafkaError) as error:
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED) from error


def _client(call: Call, sender: Sender, address: bytes) -> Session:
    """Whose request it is; the sender itself, if it does not name a client. A broker that may send envelopes
    may name any client, so it needs no further rights."""
    if sender.principal is None:
        return Session(call.listener, call.session.host, call.session.principal, is_trusted=True)
    family = {4: socket.AF_INET, 16: socket.AF_INET6}.get(len(address))
    host = "" if family is None else socket.inet_ntop(family, address)
    return Session(call.listener, host, sender.principal)


def _checked_header(call: Call, data: bytes) -> RequestHeader:
    try:
        header, _ = decode_request_header(data)
    except WireError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST) from error
    row = call.broker.rows.get(header.api_key)
    if row is None or header.api_key not in FORWARDED | RELAYED or len(data) > FORWARDED_BYTES_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    low, high = row.versions
    if not low <= header.api_version <= high:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return header


def _answered(call: Call, client: Session, header: RequestHeader, data: bytes) -> Work[EnvelopeResponse]:
    """Answer the request in the envelope. It has the same limits as one that comes from a client directly."""
    try:
        message = yield from _decoded(header, data, SHORT_ELEMENTS_MAX)
    except TooManyElements:
        long_requests = call.broker.dispatcher.long_requests
        place = long_requests.enter()
        try:
            yield place
            message = yield from _decoded(header, data, ELEMENTS_MAX)
            return (yield from _handled(call, client, header, message))
        finally:
            long_requests.leave(place)
    return (yield from _handled(call, client, header, message))


def _decoded(header: RequestHeader, data: bytes, elements_max: int) -> Work[Any]:
    _, reader = decode_request_header(data, elements_max)
    try:
        return (yield from decode_request_body_in_portions(header, reader))
    except WireError as error:
        if isinstance(error, TooManyElements) and elements_max < ELEMENTS_MAX:
            raise
        raise KafkaError(ErrorCode.INVALID_REQUEST) from error


def _handled(call: Call, client: Session, header: RequestHeader, message: Any) -> Work[EnvelopeResponse]:
    broker = call.broker
    inner = Call(broker, call.connection, client, header, is_forwarded=True)
    response = yield completed(broker.rows[header.api_key].handler(inner, message))
    if (yield from _has_error(response, ErrorCode.NOT_CONTROLLER)):
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    offset = OFFSET.pack(broker.image.offset)
    chunks: list[Any] = yield from encode_response_in_portions(
        header.api_key, header.api_version, header.correlation_id, response
    )
    # Without the size that a frame begins with: the sender writes it again.
    chunks[0] = memoryview(chunks[0])[4:]
    return EnvelopeResponse(response_data=b"".join((offset, *chunks)))


def _has_error(response: Message, code: ErrorCode) -> Work[bool]:
    """Whether the response, or any part of it, has this error code; with a pause after each array element."""
    for field in response.FIELDS:
        if field.array and not isinstance(field.type, str):
            for part in getattr(response, field.name) or ():
                if has_error(part, code):
                    return True
                yield
    return getattr(response, "error_code", ErrorCode.NONE) == code
