"""Raw connections to the broker under test: whole frames out, whole frames in."""

import socket
import struct
import time
from types import TracebackType

from tests.bench import frames

SOCKET_BUFFER_BYTES = 4 << 20


class Connection:
    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=120)
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

    def _fill(self, target: memoryview) -> None:
        filled = 0
        while filled < len(target):
            received = self.socket.recv_into(target[filled:], 0, socket.MSG_WAITALL)
            if received == 0:
                raise ConnectionError("the broker closed the connection")
            filled += received

    def ask(self, request: bytes | bytearray) -> memoryview:
        self.send(request)
        return self.receive()


def check_produced(answer: memoryview, error_position: int) -> None:
    (error,) = struct.unpack_from(">h", answer, error_position)
    if error:
        raise RuntimeError(f"produce was answered with error {error}")


def create_topic(bootstrap: str, topic: str, partitions: int = 1, **configs: str) -> None:
    """Create the topic and wait until every partition has a leader; config names with _ for the dots."""
    named = [(key.replace("_", "."), value) for key, value in configs.items()]
    with Connection(bootstrap) as connection:
        answer = connection.ask(frames.create_topic_request(topic, partitions, named))
        # size, id, throttle, count, name, error
        (error,) = struct.unpack_from(">h", answer, 4 + 4 + 4 + 4 + 2 + len(topic))
        if error:
            raise RuntimeError(f"topic {topic} was refused with error {error}")
        batch = frames.value_batch(1)
        for partition in range(partitions):
            _await_leader(connection, topic, frames.produce_request(topic, partition, batch))


def _await_leader(connection: Connection, topic: str, request: bytes) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        answer = connection.ask(request)
        (error,) = struct.unpack_from(">h", answer, frames.produce_error_position(topic))
        if error == 0:
            return
        time.sleep(0.02)
    raise RuntimeError(f"topic {topic} has no leader: error {error}")


def delete_topic(bootstrap: str, topic: str) -> None:
    with Connection(bootstrap) as connection:
        connection.ask(frames.delete_topic_request(topic))
