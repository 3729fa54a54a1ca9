"""Raw connections to the broker under test: complete frames are sent and received."""

import socket
import ssl
import struct
import time
from collections.abc import Mapping
from types import TracebackType

from tests.bench import frames

ANSWER_SECONDS_MAX = 120
LEADER_SECONDS_MAX = 300.0
# UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER: try again.
NO_LEADER_YET = (3, 5, 6)


class Connection:
    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS_MAX)
        # Python's own timeouts would ask poll() before each call and make MSG_WAITALL return early.
        self.socket.settimeout(None)
        limit = struct.pack("@ll", ANSWER_SECONDS_MAX, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray(1 << 16)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, request: bytes | bytearray) -> None:
        self.socket.sendall(request)

    def receive(self) -> memoryview:
        """The next answer with its size in front; valid until the next call."""
        view = memoryview(self.buffer)
        self._fill(view[:4])
        size = 4 + int(struct.unpack_from(">i", view)[0])
        if size > len(self.buffer):
            prefix = bytes(view[:4])
            self.buffer = bytearray(size + (1 << 16))
            view = memoryview(self.buffer)
            view[:4] = prefix
        self._fill(view[4:size])
        return view[:size]

    def receive_alike(self, size: int) -> memoryview:
        """Like receive(), with one system call if the answer is as large as the one before (`size`)."""
        view = memoryview(self.buffer)[:size]
        self._fill(view)
        if int.from_bytes(view[:4], "big") + 4 != size:
            raise RuntimeError("the size of an answer differs from the size before: the broker refused")
        return view

    def _fill(self, target: memoryview) -> None:
        filled = 0
        while filled < len(target):
            try:
                received = self.socket.recv_into(target[filled:], 0, socket.MSG_WAITALL)
            except BlockingIOError:
                raise TimeoutError(f"the broker did not answer within {ANSWER_SECONDS_MAX} s") from None
            if received == 0:
                raise ConnectionError("the broker closed the connection")
            filled += received

    def ask(self, request: bytes | bytearray) -> memoryview:
        self.send(request)
        return self.receive()


class TlsConnection(Connection):
    def __init__(self, bootstrap: str, authority: str) -> None:
        super().__init__(bootstrap)
        context = ssl.create_default_context(cafile=authority)
        self.socket = context.wrap_socket(self.socket, server_hostname=bootstrap.rsplit(":", 1)[0])

    def _fill(self, target: memoryview) -> None:
        filled = 0
        while filled < len(target):
            received = self.socket.recv_into(target[filled:])
            if received == 0:
                raise ConnectionError("the broker closed the connection")
            filled += received


def check_produced(answer: memoryview, error_position: int, expected: int | None = None) -> int:
    """The offset at which the batch was appended; raises on an error, and if it is not the one expected."""
    error, offset = struct.unpack_from(">hq", answer, error_position)
    if error:
        raise RuntimeError(f"produce was answered with error {error}")
    if expected is not None and offset != expected:
        raise RuntimeError(f"a batch was appended at offset {offset}, not at {expected}")
    return int(offset)


def create_topic(
    bootstrap: str, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    """Create the topic and wait until every partition has a leader."""
    with Connection(bootstrap) as connection:
        answer = connection.ask(frames.create_topic_request(topic, partitions, list((configs or {}).items())))
        # size, id, throttle, count, name, error
        (error,) = struct.unpack_from(">h", answer, 4 + 4 + 4 + 4 + 2 + len(topic))
        if error:
            raise RuntimeError(f"topic {topic} was refused with error {error}")
    await_leaders(bootstrap, topic, partitions)


def await_leaders(bootstrap: str, topic: str, partitions: int) -> None:
    """Return once every partition answers for its offsets."""
    deadline = time.monotonic() + LEADER_SECONDS_MAX
    with Connection(bootstrap) as connection:
        for partition in range(partitions):
            while (error := _leader_error(connection, topic, partition)) in NO_LEADER_YET:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.02)
            if error:
                raise RuntimeError(f"partition {partition} of {topic} was answered with error {error}")


def _leader_error(connection: Connection, topic: str, partition: int) -> int:
    answer = connection.ask(frames.list_offsets_request(topic, partition, frames.LATEST))
    return frames.listed_offset(topic, answer)[0]


def delete_topic(bootstrap: str, topic: str) -> None:
    with Connection(bootstrap) as connection:
        connection.ask(frames.delete_topic_request(topic))
