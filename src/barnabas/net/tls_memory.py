"""TLS between a socket and memory: OpenSSL decrypts from and encrypts to buffers, and this module moves them.

That takes fewer system calls than when OpenSSL reads (two for each record) and writes (one for each record)
itself. If the kernel encrypts (kTLS), tls_socket.py is used instead."""

import socket
import ssl
from contextlib import suppress
from typing import Any, cast

from barnabas.net.chunks import Bytes

# One call receives at most this much: each connection keeps a buffer of about this size once it was full.
RECEIVED_BYTES_MAX = 64 * 1024
_NOTHING = memoryview(b"")


class MemoryTls:
    """The server's end of TLS on a non-blocking socket, with the methods of tls_socket.py. `arriving` is a
    buffer that connections of one event loop share: it is empty between two calls."""

    __slots__ = (
        "_arriving",
        "_has_ended",
        "_incoming",
        "_is_drained",
        "_outgoing",
        "_owed",
        "_plain",
        "_tls",
    )

    # Receiving never waits for sending here: answers to new keys of the peer are sent with the next reply.
    read_wants_write = False
    is_sent_by_kernel = False

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, arriving: memoryview) -> None:
        self._plain = plain
        self._arriving = arriving
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        # Encrypted, but not taken by the socket yet.
        self._owed = _NOTHING
        # Whether OpenSSL needs more bytes from the socket before it can decrypt anything.
        self._is_drained = True
        self._has_ended = False

    def fileno(self) -> int:
        return self._plain.fileno()

    def getpeercert(self) -> bytes | None:
        return self._tls.getpeercert(binary_form=True)

    def shutdown(self, how: int) -> None:
        self._plain.shutdown(how)

    # ---- the handshake

    def do_handshake(self) -> None:
        """As that of a socket: SSLWantReadError, SSLWantWriteError, or an error that ends the connection."""
        while True:
            self._flush_handshake()
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush_handshake()
                self._receive_handshake()
                continue
            except ssl.SSLError:
                # The alert that says why.
                with suppress(OSError):
                    self._flush_handshake()
                raise
            self._flush_handshake()
            self._is_drained = self._incoming.pending == 0
            return

    def _receive_handshake(self) -> None:
        try:
            count = self._plain.recv_into(self._arriving)
        except BlockingIOError:
            raise ssl.SSLWantReadError from None
        if count:
            self._incoming.write(self._arriving[:count])
        else:
            self._incoming.write_eof()

    def _flush_handshake(self) -> None:
        if self._outgoing.pending and not self._owed:
            self._owed = memoryview(self._outgoing.read())
        try:
            self._send_owed(0)
        except BlockingIOError:
            raise ssl.SSLWantWriteError from None

    # ---- data

    @property
    def has_more(self) -> bool:
        """Whether a call of `recv_into` has something to return although the socket is not readable."""
        return self._has_ended or not self._is_drained

    def recv_into(self, view: memoryview) -> int:
        """Fill the view with what has arrived; 0 at the end of the stream."""
        arriving = self._arriving
        arrived = len(arriving)
        count = 0 if self._is_drained else self._decrypt(view)
        # After less than a whole buffer, probably nothing more has arrived.
        while count < len(view) and arrived == len(arriving) and not self._has_ended:
            try:
                arrived = self._plain.recv_into(arriving)
            except BlockingIOError:
                break
            if arrived == 0:
                self._has_ended = True
                break
            self._incoming.write(arriving[:arrived])
            count += self._decrypt(view[count:])
        if count == 0 and not self._has_ended:
            # Nothing, or part of a record.
            raise BlockingIOError
        return count

    def _decrypt(self, view: memoryview) -> int:
        count, room = 0, len(view)
        read: Any = self._tls.read
        try:
            while count < room:
                received = cast(int, read(room - count, view[count:] if count else view))
                if received == 0:
                    self._has_ended = True
                    return count
                count += received
            self._is_drained = False
        except ssl.SSLWantReadError:
            self._is_drained = True
        except ssl.SSLError:
            # A goodbye, or bytes that are not what the peer encrypted. What came before is still good.
            self._has_ended = True
        return count

    def send(self, data: Bytes, flags: int = 0) -> int:
        """Send all of the data, or raise BlockingIOError: then the same bytes must be sent before anything
        else."""
        if not self._owed:
            self._tls.write(data)
            self._owed = memoryview(self._outgoing.read())
        self._send_owed(flags)
        return len(data)

    def _send_owed(self, flags: int) -> None:
        while self._owed:
            sent = self._plain.send(self._owed, flags)
            # Not an empty part of it: that would keep the memory.
            self._owed = self._owed[sent:] if sent < len(self._owed) else _NOTHING

    def close(self) -> None:
        """Say goodbye if that is possible at once, and close."""
        # An error is usual here: the peer has not said goodbye yet, and it is not waited for.
        with suppress(OSError, ValueError):
            self._tls.unwrap()
        if not self._owed and self._outgoing.pending:
            with suppress(OSError):
                self._plain.send(self._outgoing.read())
        self._plain.close()
