"""A server that sends everything back, for tests of networks."""

import contextlib
import socket
import threading
import time

PATIENCE_SECONDS = 20.0


class Echo:
    """Sends everything back, and remembers it."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.received = b""
        self.ended = threading.Event()
        self._connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._connection, _ = self._listener.accept()
                with self._connection, contextlib.suppress(OSError):
                    while data := self._connection.recv(1 << 16):
                        self.received += data
                        self._connection.sendall(data)
                self.ended.set()

    def wait_for(self, data: bytes) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.received != data:
            assert time.monotonic() < deadline, self.received
            time.sleep(0.005)

    def close(self) -> None:
        for each in (self._listener, self._connection):
            # shutdown, not only close: it wakes the thread that waits.
            if each is not None:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data


def echoed(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return receive(connection, len(data))
