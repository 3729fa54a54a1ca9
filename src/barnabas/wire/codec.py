"""Decodes frames to messages and encodes messages to frames, for brokers and for clients.

A frame that is decoded begins after the four bytes of its size; an encoded frame includes them. Handlers only
see the newest form of a message; the few old forms are converted here, by `reshape`.

Requests and responses may be valid and long. `elements_max` limits the array elements of a request, and the
functions whose names end in _in_portions are generators that yield after every few thousand elements, so that
an event loop can do other work in between:

    decoding = decode_request_body_in_portions(header, reader)
    while True:
        try:
            next(decoding)
        except StopIteration as end:
            return end.value
        await asyncio.sleep(0)
"""

import struct
from collections.abc import Generator
from functools import cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

from barnabas.kernels.codec import ELEMENTS_MAX, Reader, TooManyElements, WireError
from barnabas.kernels.codec_write import UnwritableError, Writer
from barnabas.kernels.plans import StructPlan
from barnabas.wire.apis import Api, api_of
from barnabas.wire.message import Message, Records
from barnabas.wire.plans import plan_of
from barnabas.wire.reshape import (
    LIFT_REQUEST,
    LIFT_RESPONSE,
    LOWER_REQUEST,
    LOWER_RESPONSE,
    Reshape,
    rule_for,
)

__all__ = [
    "ELEMENTS_MAX",
    "Chunk",
    "Reader",
    "Request",
    "RequestHeader",
    "TooManyElements",
    "UnsupportedApi",
    "WireError",
    "decode_message",
    "decode_request",
    "decode_request_body",
    "decode_request_body_in_portions",
    "decode_request_header",
    "decode_response",
    "encode_message",
    "encode_request",
    "encode_response",
    "encode_response_in_portions",
]

# A part of a frame: bytes, or a range of a file, which the sender copies from the file.
Chunk: TypeAlias = Records
Frame: TypeAlias = bytes | bytearray | memoryview
_M = TypeVar("_M", bound=Message)

# Reading or writing this many elements takes one to three milliseconds.
PORTION_ELEMENTS = 2000

# The size is filled in when the frame is complete.
_RESPONSE_HEAD = struct.Struct(">xxxxi")
_REQUEST_HEAD = struct.Struct(">xxxxhhih")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class Request(NamedTuple):
    header: RequestHeader
    message: Any


class UnsupportedApi(WireError):
    """A valid header with an API or a version for which there is no schema."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"API {header.api_key} version {header.api_version} is not supported")
        self.header = header
        self.api_key = header.api_key
        self.api_version = header.api_version
        self.correlation_id = header.correlation_id


class _Form(NamedTuple):
    """What one API looks like in one version and direction."""

    plan: StructPlan
    has_header_tags: bool
    # Between the form of this version and the newest one.
    reshape: Reshape | None


@cache
def _request_to_read(key: int, version: int) -> _Form | None:
    api = _find(key, version)
    return None if api is None else _request_form(api, version, rule_for(LIFT_REQUEST, key, version))


@cache
def _request_to_write(key: int, version: int) -> _Form:
    return _request_form(_known(key, version), version, rule_for(LOWER_REQUEST, key, version))


@cache
def _response_to_read(key: int, version: int) -> _Form:
    return _response_form(_known(key, version), version, rule_for(LIFT_RESPONSE, key, version))


@cache
def _response_to_write(key: int, version: int) -> _Form:
    return _response_form(_known(key, version), version, rule_for(LOWER_RESPONSE, key, version))


def _request_form(api: Api, version: int, reshape: Reshape | None) -> _Form:
    is_flexible = api.is_flexible(version)
    return _Form(plan_of(api.request, version, is_flexible), is_flexible, reshape)


def _response_form(api: Api, version: int, reshape: Reshape | None) -> _Form:
    plan = plan_of(api.response, version, api.is_flexible(version))
    return _Form(plan, api.has_flexible_response_header(version), reshape)


def _find(key: int, version: int) -> Api | None:
    api = api_of(key)
    return api if api is not None and api.first <= version <= api.last else None


def _known(key: int, version: int) -> Api:
    api = _find(key, version)
    if api is None:
        raise UnsupportedApi(RequestHeader(key, version, 0, None))
    return api


def decode_request(frame: Frame) -> Request:
    header, reader = decode_request_header(frame)
    return tuple.__new__(Request, (header, decode_request_body(header, reader)))


def decode_request_header(frame: Frame, elements_max: int = ELEMENTS_MAX) -> tuple[RequestHeader, Reader]:
    """The header, and the reader for the body: a broker may refuse a request before it parses the body.

    A body whose arrays have more than `elements_max` elements, all together, raises TooManyElements before
    memory is allocated for more."""
    reader = Reader(frame, elements_max)
    # Faster than the constructor of the named tuple, which is Python.
    return tuple.__new__(RequestHeader, reader.request_header()), reader


def decode_request_body(header: RequestHeader, reader: Reader) -> Any:
    """The message in its newest form. Bytes after it are ignored, as in Kafka."""
    version = header.api_version
    form = _request_to_read(header.api_key, version)
    if form is None:
        raise UnsupportedApi(header)
    plan, has_header_tags, reshape = form
    if has_header_tags:
        reader.skip_tags()
    message = reader.struct(plan)
    if reshape is not None:
        reshape(message, version)
    return message


def decode_request_body_in_portions(header: RequestHeader, reader: Reader) -> Generator[None, None, Any]:
    """Like decode_request_body, as a generator that yields after each portion and returns the message."""
    version = header.api_version
    form = _request_to_read(header.api_key, version)
    if form is None:
        raise UnsupportedApi(header)
    if form.has_header_tags:
        reader.skip_tags()
    message = yield from reader.struct_in_portions(form.plan, PORTION_ELEMENTS)
    if form.reshape is not None:
        form.reshape(message, version)
    return message


def encode_response(api_key: int, version: int, correlation_id: int, message: Message) -> list[Chunk]:
    plan, has_header_tags, reshape = _response_to_write(api_key, version)
    head = _RESPONSE_HEAD.pack(correlation_id)
    if reshape is not None:
        reshape(message, version)
    return _frame(head + b"\0" if has_header_tags else head, plan, message)


def encode_response_in_portions(
    api_key: int, version: int, correlation_id: int, message: Message
) -> Generator[None, None, list[Chunk]]:
    """Like encode_response, as a generator that yields after each portion and returns the chunks.

    Nobody may change the message in between or use it afterwards: structs are freed once they are written."""
    form = _response_to_write(api_key, version)
    head = _RESPONSE_HEAD.pack(correlation_id)
    if form.reshape is not None:
        form.reshape(message, version)
    writer = Writer(head + b"\0" if form.has_header_tags else head)
    try:
        yield from writer.struct_in_portions(form.plan, message, PORTION_ELEMENTS)
        return writer.finish_frame()
    except UnwritableError as error:
        raise WireError(f"{type(message).__name__}: {error}") from error


def encode_request(header: RequestHeader, message: Message) -> list[Chunk]:
    key, version, correlation_id, client_id = header
    plan, has_header_tags, reshape = _request_to_write(key, version)
    client = b"" if client_id is None else client_id.encode()
    head = _REQUEST_HEAD.pack(key, version, correlation_id, -1 if client_id is None else len(client)) + client
    if reshape is not None:
        reshape(message, version)
    return _frame(head + b"\0" if has_header_tags else head, plan, message)


def decode_response(api_key: int, version: int, frame: Frame) -> tuple[int, Any]:
    """(correlation id, message in its newest form)."""
    plan, has_header_tags, reshape = _response_to_read(api_key, version)
    reader = Reader(frame)
    correlation_id = reader.int32()
    if has_header_tags:
        reader.skip_tags()
    message = reader.struct(plan)
    if reshape is not None:
        reshape(message, version)
    return correlation_id, message


def encode_message(message: Message, version: int, flexible_from: int) -> bytes:
    """A message without header and size, such as the subscriptions that other messages have as bytes."""
    writer = Writer(b"")
    try:
        writer.struct(plan_of(type(message), version, version >= flexible_from), message)
    except UnwritableError as error:
        raise WireError(f"{type(message).__name__}: {error}") from error
    return b"".join(writer.finish())


def decode_message(kind: type[_M], version: int, flexible_from: int, data: Frame) -> _M:
    message: _M = Reader(data).struct(plan_of(kind, version, version >= flexible_from))
    return message


def _frame(head: bytes, plan: StructPlan, message: Message) -> list[Chunk]:
    writer = Writer(head)
    try:
        writer.struct(plan, message)
        return writer.finish_frame()
    except UnwritableError as error:
        raise WireError(f"{type(message).__name__}: {error}") from error
