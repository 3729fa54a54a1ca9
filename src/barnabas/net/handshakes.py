"""What the TLS connections of one event loop share: the queue of their handshakes, and a buffer.

A handshake takes about as long as a hundred requests. However many peers connect at once, a turn of the loop
spends a limited time on handshakes; requests of peers that are connected already go first."""

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic

from barnabas.net.tls_memory import RECEIVED_BYTES_MAX
from barnabas.net.tls_socket import PORTION_BYTES

# One turn of the loop goes on with handshakes for about this long, at least with one.
TURN_SECONDS_MAX = 0.003


class Handshakes:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        # For portions of files on their way to a peer; what it holds is used before the next call.
        self.portion = memoryview(bytearray(PORTION_BYTES))
        # For what arrives; it is decrypted before the next call.
        self.arriving = memoryview(bytearray(RECEIVED_BYTES_MAX))

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call `go_on`, the next step of a handshake, after those that wait already."""
        self._waiting.append(go_on)
        if len(self._waiting) == 1:
            self._loop.call_soon(self._serve)

    def _serve(self) -> None:
        latest = monotonic() + TURN_SECONDS_MAX
        try:
            while self._waiting:
                # It stays in the queue during the call, so that `wait` does not schedule this again.
                self._waiting[0]()
                self._waiting.popleft()
                if monotonic() > latest:
                    break
        except BaseException:
            # A defect in one of the calls: the others must not wait for ever.
            self._waiting.popleft()
            raise
        finally:
            if self._waiting:
                self._loop.call_soon(self._serve)
