"""Frames to messages and back, in both directions: a broker's and a client's.

A frame here is what follows the four bytes of its size when read, and starts with them when written. Handlers
see the newest form of a message only; `reshape` turns the few old forms into it, here."""

import struct
from typing import Any, NamedTuple, TypeAlias, TypeVar

from barnabas.kernels.codec import Reader, StructPlan, WireError, Writer
from barnabas.wire.apis import Api, api_of
from barnabas.wire.message import Message, Records
from barnabas.wire.plans import plan_of
from barnabas.wire.reshape import lift_request, lift_response, lower_request, lower_response

__all__ = [
    "Chunk",
    "Request",
    "RequestHeader",
    "UnsupportedApi",
    "WireError",
    "decode_message",
    "decode_request",
    "decode_request_body",
    "decode_request_header",
    "decode_response",
    "encode_message",
    "encode_request",
    "encode_response",
]

# A piece of a frame: bytes, or a slice of a file that the sender copies from where it is.
Chunk: TypeAlias = Records
Frame: TypeAlias = bytes | bytearray | memoryview
_M = TypeVar("_M", bound=Message)

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
    """A well-formed header that names an API or a version we have no schema for."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"API {header.api_key} version {header.api_version} is not supported")
        self.header = header
        self.api_key = header.api_key
        self.api_version = header.api_version
        self.correlation_id = header.correlation_id


def decode_request(frame: Frame) -> Request:
    header, reader = decode_request_header(frame)
    return Request(header, decode_request_body(header, reader))


def decode_request_header(frame: Frame) -> tuple[RequestHeader, Reader]:
    """The header, and the reader that stands behind it: a broker may refuse before it parses the body."""
    reader = Reader(frame)
    return RequestHeader._make(reader.request_header()), reader


def decode_request_body(header: RequestHeader, reader: Reader) -> Any:
    """The message in its newest form. Bytes after it are left alone, as Kafka leaves them."""
    key, version, _, _ = header
    api = api_of(key)
    if api is None or not api.first <= version <= api.last:
        raise UnsupportedApi(header)
    is_flexible = version >= api.flexible_from
    if is_flexible:
        reader.skip_tags()
    return lift_request(key, version, reader.struct(plan_of(api.request, version, is_flexible)))


def encode_response(api_key: int, version: int, correlation_id: int, message: Message) -> list[Chunk]:
    api = _known(api_key, version)
    head = _RESPONSE_HEAD.pack(correlation_id)
    if api.has_flexible_response_header(version):
        head += b"\0"
    plan = plan_of(api.response, version, version >= api.flexible_from)
    return _frame(head, plan, lower_response(api_key, version, message))


def encode_request(header: RequestHeader, message: Message) -> list[Chunk]:
    api = _known(header.api_key, header.api_version)
    client = b"" if header.client_id is None else header.client_id.encode()
    length = -1 if header.client_id is None else len(client)
    head = _REQUEST_HEAD.pack(api.key, header.api_version, header.correlation_id, length) + client
    is_flexible = api.is_flexible(header.api_version)
    if is_flexible:
        head += b"\0"
    plan = plan_of(api.request, header.api_version, is_flexible)
    return _frame(head, plan, lower_request(api.key, header.api_version, message))


def decode_response(api_key: int, version: int, frame: Frame) -> tuple[int, Any]:
    """(correlation id, message in its newest form)."""
    api = _known(api_key, version)
    reader = Reader(frame)
    correlation_id = reader.int32()
    if api.has_flexible_response_header(version):
        reader.skip_tags()
    message = reader.struct(plan_of(api.response, version, api.is_flexible(version)))
    return correlation_id, lift_response(api_key, version, message)


def encode_message(message: Message, version: int, flexible_from: int) -> bytes:
    """A message without header or size: the schemas that other messages carry as bytes."""
    writer = Writer(b"")
    writer.struct(plan_of(type(message), version, version >= flexible_from), message)
    return b"".join(writer.finish())


def decode_message(kind: type[_M], version: int, flexible_from: int, data: Frame) -> _M:
    message: _M = Reader(data).struct(plan_of(kind, version, version >= flexible_from))
    return message


def _known(api_key: int, version: int) -> Api:
    api = api_of(api_key)
    if api is None or not api.first <= version <= api.last:
        raise UnsupportedApi(RequestHeader(api_key, version, 0, None))
    return api


def _frame(head: bytes, plan: StructPlan, message: Message) -> list[Chunk]:
    writer = Writer(head)
    writer.struct(plan, message)
    return writer.finish_frame()
