"""A client that sends exactly what a test gives it: one blocking socket, any API in any version, any bytes.

Real clients choose versions, retry and reconnect by themselves; a test of the protocol needs none of that.

    with RawClient("127.0.0.1", broker.port) as client:
        answer = client.call(3, 12, MetadataRequest(topics=None))
        client.send_bytes(b"\\x7f\\xff\\xff\\xff")
        assert client.is_closed_by_peer()
"""

import socket
import struct
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, cast

from barnabas.wire.codec import RequestHeader, decode_response, encode_request
from barnabas.wire.message import Message

TIMEOUT_SECONDS = 20.0
_SIZE = struct.Struct(">i")


class RawClient:
    """One connection. Whatever takes longer than `timeout_seconds` raises TimeoutError."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str | None = "raw-client",
        timeout_seconds: float = TIMEOUT_SECONDS,
        source_host: str | None = None,
    ) -> None:
        self.client_id = client_id
        source = None if source_host is None else (source_host, 0)
        self.socket = socket.create_connection((host, port), timeout_seconds, source)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    # ---- messages

    def call(self, api_key: int, version: int, message: Message) -> Any:
        """Send a request and return its response; ConnectionError when the peer closes instead."""
        sent = self.send(api_key, version, message)
        correlation_id, response = self.receive(api_key, version)
        if correlation_id != sent:
            raise ConnectionError(f"the answer to request {sent} says it answers {correlation_id}")
        return response

    def send(self, api_key: int, version: int, message: Message) -> int:
        """Send a request without waiting; returns its correlation id."""
        self._correlation_id += 1
        self.send_bytes(self.encode(api_key, version, message, self._correlation_id))
        return self._correlation_id

    def receive(self, api_key: int, version: int) -> tuple[int, Any]:
        """The next response, read as one of that API and version: (correlation id, message)."""
        return decode_response(api_key, version, self.receive_frame())

    def encode(self, api_key: int, version: int, message: Message, correlation_id: int = 0) -> bytes:
        """The whole frame of a request, its size included: to be sent later, or damaged first."""
        header = RequestHeader(api_key, version, correlation_id, self.client_id)
        # A request never holds file slices, which is what a chunk may be besides bytes.
        return b"".join(cast(list[bytes], encode_request(header, message)))

    # ---- bytes

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        """The next frame without its size; ConnectionError if the peer closes before it is complete."""
        (size,) = _SIZE.unpack(self._receive_exactly(4))
        return self._receive_exactly(size)

    def discard_frame(self) -> None:
        """Receive the next frame and keep none of it. To allocate and copy a very large one would hold the
        interpreter lock, and other threads of the test would measure that."""
        (left,) = _SIZE.unpack(self._receive_exactly(4))
        room = memoryview(bytearray(1 << 16))
        while left:
            received = self.socket.recv_into(room[:left])
            if not received:
                raise ConnectionError(f"the peer closed; {left} bytes are missing")
            left -= received

    def is_closed_by_peer(self, within_seconds: float = TIMEOUT_SECONDS) -> bool:
        """Whether the peer closes without sending anything. False after an answer, or if nothing happens in
        time."""
        return self._within(within_seconds, lambda: self.socket.recv(1)) == b""

    def is_silent(self, for_seconds: float) -> bool:
        """Whether nothing happens in that time: no byte comes, and the connection is not closed."""
        return self._within(for_seconds, lambda: self.socket.recv(1, socket.MSG_PEEK)) is None

    def _within(self, seconds: float, receive: Callable[[], bytes]) -> bytes | None:
        """The bytes that come, b"" for a close, None if nothing happens."""
        usual = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        try:
            return receive()
        except ConnectionError:
            return b""
        except TimeoutError:
            return None
        finally:
            self.socket.settimeout(usual)

    def _receive_exactly(self, size: int) -> bytes:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            received = self.socket.recv_into(view)
            if not received:
                raise ConnectionError(f"the peer closed; {len(view)} of {size} bytes are missing")
            view = view[received:]
        return bytes(data)
