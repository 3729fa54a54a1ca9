"""Requests that wait for their answers."""

import asyncio
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from barnabas.errors import DisconnectedError, ErrorCode
from barnabas.wire.apis import API_VERSIONS_KEY
from barnabas.wire.codec import WireError, decode_response

_CORRELATION_ID = struct.Struct(">i")
_ERROR_AFTER_CORRELATION_ID = struct.Struct(">xxxxh")

# Takes the frame of an answer, without its size, or the error that came instead.
WhenAnswered: TypeAlias = Callable[[bytes | bytearray | DisconnectedError], None]


class PendingRequest(NamedTuple):
    """A request without an answer: the answer goes to the future or to `callback` as a message, or to `sink`
    as it is."""

    correlation_id: int
    api_key: int
    version: int
    future: asyncio.Future[Any] | None
    sink: WhenAnswered | None = None
    callback: Callable[[Any], None] | None = None

    def decode(self, frame: bytes | bytearray) -> Any:
        """The message of the answer; WireError if it is none, or that of another request."""
        version = self.version
        if self.api_key == API_VERSIONS_KEY and version > 0 and len(frame) >= 6:
            # A broker that does not support the version answers with an error in version 0.
            (error_code,) = _ERROR_AFTER_CORRELATION_ID.unpack_from(frame)
            version = 0 if error_code == ErrorCode.UNSUPPORTED_VERSION else version
        correlation_id, message = decode_response(self.api_key, version, frame)
        if correlation_id != self.correlation_id:
            raise self._not_ours(correlation_id)
        return message

    def check(self, frame: bytes | bytearray) -> None:
        """Raise WireError if the frame is the answer to another request."""
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        if correlation_id != self.correlation_id:
            raise self._not_ours(correlation_id)

    def _not_ours(self, correlation_id: int) -> WireError:
        return WireError(f"expected the answer to request {self.correlation_id}, got {correlation_id}")


def are_in_a_row(pending: Sequence[PendingRequest], api_key: int, last_id: int, count_max: int) -> bool:
    """Whether these are at most so many requests, all of this API, with the ids up to `last_id` without a
    gap."""
    if not pending:
        return True
    if len(pending) > count_max or any(each.api_key != api_key for each in pending):
        return False
    last = pending[-1].correlation_id
    return last == last_id and last - pending[0].correlation_id == len(pending) - 1
