"""A TCP proxy in front of a broker that loses acknowledgements, and counts connections and requests by key.

It passes each Produce to the broker, but instead of passing on the first few answers it closes the
connection: the broker has written the records, and the client must assume that they are lost. The proxy
replaces the addresses that the broker advertises by its own, so that clients stay connected to the proxy. It
runs on its own threads and listens on loopback only."""

import contextlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType

PRODUCE = 0


class LossyProxy:
    def __init__(self, bootstrap: str, acks_to_lose: int) -> None:
        host, port = bootstrap.split(":")
        self.broker = (host, int(port))
        self.acks_left_to_lose = acks_to_lose
        self.acks_lost = 0
        self.opened = 0
        self.requests: Counter[int] = Counter()
        self._relays: list[Relay] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        own_port = self._listener.getsockname()[1]
        self.bootstrap = f"127.0.0.1:{own_port}"
        # In every answer with a broker, its port follows directly after its host.
        self._real_address = host.encode() + struct.pack(">i", int(port))
        self._own_address = host.encode() + struct.pack(">i", own_port)

    def __enter__(self) -> "LossyProxy":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # shutdown, not only close: it wakes the thread that waits in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                relay = Relay(self, client, socket.create_connection(self.broker))
                self._relays.append(relay)
                self.opened += 1
                relay.start()

    @property
    def open_now(self) -> int:
        """Connections of clients that are not closed."""
        return sum(1 for relay in self._relays if not relay.is_cut)

    def rewritten(self, frame: bytes) -> bytes:
        return frame.replace(self._real_address, self._own_address)

    def loses_this_ack(self) -> bool:
        with self._lock:
            if self.acks_left_to_lose == 0:
                return False
            self.acks_left_to_lose -= 1
            self.acks_lost += 1
            return True


class Relay:
    """One client connection and its broker connection, a thread for each direction."""

    def __init__(self, proxy: LossyProxy, client: socket.socket, broker: socket.socket) -> None:
        self.proxy = proxy
        self.client = client
        self.broker = broker
        self.produce_ids: set[int] = set()
        self.is_cut = False

    def start(self) -> None:
        for direction in (self._requests, self._answers):
            threading.Thread(target=self._until_cut, args=(direction,), daemon=True).start()

    def _until_cut(self, direction: Callable[[], None]) -> None:
        with contextlib.suppress(OSError, EOFError):
            direction()
        self.is_cut = True
        for each in (self.client, self.broker):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _requests(self) -> None:
        while True:
            frame = read_frame(self.client)
            key, _, correlation_id = struct.unpack_from(">hhi", frame, 4)
            self.proxy.requests[key] += 1
            if key == PRODUCE:
                self.produce_ids.add(correlation_id)
            self.broker.sendall(frame)

    def _answers(self) -> None:
        while True:
            frame = read_frame(self.broker)
            (correlation_id,) = struct.unpack_from(">i", frame, 4)
            if correlation_id in self.produce_ids and self.proxy.loses_this_ack():
                return
            self.client.sendall(self.proxy.rewritten(frame))


def read_frame(source: socket.socket) -> bytes:
    """One length-prefixed frame, prefix included."""
    prefix = read_exactly(source, 4)
    return prefix + read_exactly(source, struct.unpack(">i", prefix)[0])


def read_exactly(source: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = source.recv(size - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)
