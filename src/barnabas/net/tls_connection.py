"""A connection over TLS: OpenSSL reads into the connection's own buffer and sends from its output.

There is no transport in between. The handshake comes first, in steps that wait in a queue (handshakes.py);
it has a deadline. File ranges are read in portions, or sent with sendfile if the kernel encrypts (kTLS)."""

import asyncio
import os
import socket
import ssl
from typing import Protocol, TypeAlias, cast

from barnabas.net.chunks import Bytes, FileRange
from barnabas.net.connection import Connection, ConnectionOwner
from barnabas.net.handshakes import Handshakes
from barnabas.net.tls_memory import MemoryTls
from barnabas.net.tls_socket import PORTION_BYTES, TlsSocket
from barnabas.security.key_stores import TlsError

HANDSHAKE_SECONDS_MAX = 10.0
# A failed connection stays open this long, so that the peer reads why, and does not try again at once.
FAILED_SECONDS = 0.1
# One turn of the loop encrypts at most this much for one peer.
TURN_BYTES_MAX = 2 * 1024 * 1024
# OpenSSL's option to let the kernel encrypt; Python has a name for it from 3.12 on.
ENABLE_KTLS = getattr(ssl, "OP_ENABLE_KTLS", 1 << 3)
SecureSocket: TypeAlias = MemoryTls | TlsSocket
# The first byte of what a TLS client sends.
_HANDSHAKE_RECORD = b"\x16"

_REASONS = {
    "HTTP_REQUEST": "it sent bytes that are not TLS",
    "WRONG_VERSION_NUMBER": "it sent bytes that are not TLS",
    "UNSUPPORTED_PROTOCOL": "it offers no TLS version of ssl.enabled.protocols",
    "NO_SHARED_CIPHER": "it offers no cipher suite that can be used here",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate, but ssl.client.auth is required",
}


class TlsOwner(ConnectionOwner, Protocol):
    def secured(self, connection: "TlsConnection", certificate: bytes | None) -> None:
        """The handshake is complete; TlsError if the peer is not welcome. The certificate (DER) is valid."""
        ...

    def handshake_failed(self, connection: "TlsConnection", reason: str) -> None:
        """The connection is being closed because of what the peer did in the handshake."""
        ...


class TlsConnection(Connection):
    def __init__(
        self,
        owner: TlsOwner,
        loop: asyncio.AbstractEventLoop,
        frame_bytes_max: int,
        context: ssl.SSLContext,
        handshakes: Handshakes,
    ) -> None:
        super().__init__(owner, loop, frame_bytes_max)
        self._tls_owner = owner
        self._context = context
        self._handshakes = handshakes
        self._deadline: asyncio.TimerHandle | None = None
        # During the handshake and after it.
        self._greeted: SecureSocket | None = None
        self._secure: SecureSocket | None = None
        # Whether the kernel encrypts what is sent to this peer.
        self.has_kernel_tls = False
        self._rereads = False

    @property
    def is_secured(self) -> bool:
        return self._secure is not None

    # ---- the handshake

    def begin(self, plain: socket.socket) -> None:
        super().begin(plain)
        if self.is_muted:
            # It waits for its turn, and must not cost a handshake before.
            self._loop.remove_reader(self._socket.fileno())
        elif not self.is_closed:
            self._expect_handshake()

    def unmute(self) -> None:
        if self.is_muted and not (self.is_secured or self.is_closed):
            self._expect_handshake()
        super().unmute()

    def _expect_handshake(self) -> None:
        self._deadline = self._loop.call_later(HANDSHAKE_SECONDS_MAX, self._be_too_late)
        self._loop.add_reader(self._socket.fileno(), self._begin_handshake)

    def _begin_handshake(self) -> None:
        """The first bytes are here. Before them a connection costs no more than a plain one."""
        plain = cast(socket.socket, self._socket)
        try:
            first = plain.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            first = b""
        if first == _HANDSHAKE_RECORD:
            self._loop.remove_reader(plain.fileno())
            self._handshakes.wait(self._start_tls)
        elif first:
            self._fail(_REASONS["WRONG_VERSION_NUMBER"])
        else:
            # Somebody looked whether the port is open.
            self.close()

    def _start_tls(self) -> None:
        if self.is_closed:
            return
        plain = cast(socket.socket, self._socket)
        try:
            self._socket = self._greeted = self._wrap(plain)
        except OSError:
            self.close()
        else:
            self._shake_hands()

    def _wrap(self, plain: socket.socket) -> SecureSocket:
        if not self._context.options & ENABLE_KTLS:
            return MemoryTls(plain, self._context, self._handshakes.arriving)
        return TlsSocket(self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False))

    def _shake_hands(self) -> None:
        tls = self._greeted
        if self.is_closed or tls is None:
            return
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            self._loop.add_reader(tls.fileno(), self._go_on_when_readable)
        except ssl.SSLWantWriteError:
            self._loop.add_writer(tls.fileno(), self._go_on_when_writable)
        except OSError as error:
            self._fail(handshake_failure(error))
        else:
            self._finish_handshake(tls)

    def _go_on_when_readable(self) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._handshakes.wait(self._shake_hands)

    def _go_on_when_writable(self) -> None:
        self._loop.remove_writer(self._socket.fileno())
        self._handshakes.wait(self._shake_hands)

    def _finish_handshake(self, tls: SecureSocket) -> None:
        self._forget_deadline()
        self.has_kernel_tls = tls.is_sent_by_kernel
        try:
            self._tls_owner.secured(self, tls.getpeercert())
        except TlsError as error:
            self._fail(str(error))
            return
        self._secure = tls
        self.last_active = self._loop.time()
        self._loop.add_reader(tls.fileno(), self._readable)
        self._read_again()

    def _be_too_late(self) -> None:
        self._tls_owner.handshake_failed(self, f"it took longer than {HANDSHAKE_SECONDS_MAX:g} s")
        self.close()

    def _fail(self, reason: str) -> None:
        """Tell the owner, and close a little later. OpenSSL has sent the peer an alert already."""
        self._forget_deadline()
        self._tls_owner.handshake_failed(self, reason)
        if self.is_closed:
            return
        self._loop.remove_reader(self._socket.fileno())
        try:
            cast(socket.socket, self._socket).shutdown(socket.SHUT_WR)
        except OSError:
            self.close()
        else:
            self._deadline = self._loop.call_later(FAILED_SECONDS, self.close)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    # ---- input

    def _readable(self) -> None:
        super()._readable()
        secure = self._secure
        if secure is not None and secure.read_wants_write and not self.is_closed:
            # Not to be called again and again until the peer has read something.
            self._loop.remove_reader(secure.fileno())
            self._arm_writer()
        self._read_again()

    def _read_on(self) -> None:
        super()._read_on()
        self._read_again()

    def _read_again(self) -> None:
        """The loop does not know of bytes that OpenSSL has decrypted and that did not fit into the buffer."""
        if self._rereads or self._paused or self.is_closed or self._secure is None:
            return
        if self._secure.has_more and self._end < len(self._buffer):
            self._rereads = True
            self._loop.call_soon(self._reread)

    def _reread(self) -> None:
        self._rereads = False
        if not (self._paused or self.is_closed) and self._end < len(self._buffer):
            self._readable()

    # ---- output

    def _disarm_writer(self) -> None:
        super()._disarm_writer()
        secure = self._secure
        if secure is not None and secure.read_wants_write and not self.is_closed:
            # Everything is sent, so reading may go on.
            secure.read_wants_write = False
            if not self._paused:
                self._loop.add_reader(secure.fileno(), self._readable)

    def _send_bytes(self, chunk: Bytes) -> int:
        portion = chunk if len(chunk) <= PORTION_BYTES else memoryview(chunk)[:PORTION_BYTES]
        sent = self._sending().send(portion, socket.MSG_MORE if len(self._output) > 1 else 0)
        if sent == len(chunk):
            self._output.popleft()
        else:
            self._output[0] = memoryview(chunk)[sent:]
        return sent

    def _send_range(self, chunk: FileRange) -> bool:
        """Send a file range; False when this connection has sent its share of this turn."""
        if self.has_kernel_tls:
            return super()._send_range(chunk)
        secure, budget = self._sending(), TURN_BYTES_MAX
        while self._slice_sent < chunk.size:
            if budget <= 0:
                return False
            portion = self._read_portion(chunk)
            self._slice_sent += len(portion)
            budget -= len(portion)
            try:
                secure.send(portion)
            except BlockingIOError:
                # Exactly these bytes come next, and the buffer belongs to all connections.
                self._output.appendleft(bytes(portion))
                raise
            self.last_active = self._loop.time()
        self._slice_sent = 0
        self._output.popleft()
        chunk.release()
        return True

    def _read_portion(self, chunk: FileRange) -> memoryview:
        size = min(PORTION_BYTES, chunk.size - self._slice_sent)
        portion = self._handshakes.portion[:size]
        count = os.preadv(chunk.file.fileno(), [portion], chunk.position + self._slice_sent)
        if count == 0:
            # The file is shorter than when the reply was made: the frame cannot be completed.
            raise OSError("the file was truncated while it was being sent")
        return portion[:count]

    def _sending(self) -> SecureSocket:
        if self._secure is None:
            raise OSError("nothing may be sent before the handshake")
        return self._secure

    def close(self) -> None:
        self._forget_deadline()
        if not self.is_closed and self._secure is None:
            self._loop.remove_writer(self._socket.fileno())
        super().close()


def handshake_failure(error: OSError) -> str:
    """What the peer did wrong, in words that follow a colon."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({error.verify_message})"
    if isinstance(error, ssl.SSLEOFError) or not isinstance(error, ssl.SSLError):
        return "it ended the connection in the middle of the handshake"
    reason = error.reason or ""
    if reason in _REASONS:
        return _REASONS[reason]
    shown = reason.lower().replace("_", " ") or "unknown reason"
    if "ALERT" in reason:
        return f"it refused what this broker offers ({shown})"
    return f"the handshake failed ({shown})"
