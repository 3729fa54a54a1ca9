"""A broker that answers exactly what a test tells it to, over real sockets: for tests of clients.

def answer(request):
    return MetadataResponse(...) if request.header.api_key == 3 else versions({3: (0, 13)})

with ScriptedPeer(answer) as peer:
    Admin(bootstrap_servers=peer.bootstrap)
"""

import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TypeAlias, cast

from barnabas.wire.apis import API_VERSIONS_KEY
from barnabas.wire.codec import Request, RequestHeader, decode_request, encode_response
from barnabas.wire.message import Message
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsResponse

_SIZE = struct.Struct(">i")
WAIT_SECONDS_MAX = 20.0

# A message is the answer; bytes are sent as they are; CLOSE closes the connection, SILENCE leaves it open.
CLOSE = "close"
SILENCE = "silence"
Answer: TypeAlias = Message | bytes | str


def versions(ranges: Mapping[int, tuple[int, int]]) -> ApiVersionsResponse:
    """An answer to ApiVersions: (first, last) by API key; ApiVersions itself is added."""
    entries = {API_VERSIONS_KEY: (0, 4), **ranges}
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in entries.items()
        ]
    )


class ScriptedPeer:
    """`requests` holds the headers of all requests, `connections` counts those taken."""

    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.requests: list[RequestHeader] = []
        self.connections = 0
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A thread that waits in accept is not woken by close alone.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.disconnect_all()
        for thread in self._threads:
            thread.join(5)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition is true; for asyncio: `await asyncio.to_thread(peer.wait_until, ...)`."""
        end = time.monotonic() + WAIT_SECONDS_MAX
        while not condition():
            assert time.monotonic() < end, "the condition did not become true in time"
            time.sleep(0.005)

    def disconnect_all(self) -> None:
        """Close every connection, as a broker that goes away does."""
        with self._lock:
            for connection in self._open:
                _shut(connection)

    def _spawn(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.append(connection)
                self.connections += 1
            self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                while self._serve_one(connection, stream.read):
                    continue
            except OSError:
                # The client has gone.
                return

    def _serve_one(
        self,
        connection: socket.socket,
        read: Callable[[int], bytes],
        answer_to: Callable[[Request], Answer] | None = None,
    ) -> bool:
        head = read(4)
        if len(head) < 4:
            return False
        request = decode_request(read(_SIZE.unpack(head)[0]))
        self.requests.append(request.header)
        answer = (answer_to or self._answer)(request)
        if isinstance(answer, str):
            return answer == SILENCE
        if isinstance(answer, bytes):
            connection.sendall(answer)
            return True
        header = request.header
        chunks = encode_response(header.api_key, header.api_version, header.correlation_id, answer)
        connection.sendall(b"".join(cast(list[bytes], chunks)))
        return True


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # It is already closed.
        return
