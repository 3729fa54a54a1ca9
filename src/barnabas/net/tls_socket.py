"""A TLS socket with the few methods that a connection calls on a plain one, and their exceptions.

Here OpenSSL reads from and writes to the socket itself, so that it can let the kernel encrypt (kTLS). If the
kernel cannot, tls_memory.py is used."""

import socket
import ssl
import struct
from contextlib import suppress

from barnabas.net.chunks import Bytes

# The most that one TLS record holds: after a shorter one, probably nothing more has arrived.
RECORD_BYTES_MAX = 16 * 1024
# One call sends at most this much. OpenSSL wants a call that did not send everything repeated with the same
# bytes, so portions are kept until they are sent, and are not larger than they need to be.
PORTION_BYTES = 64 * 1024
# Linux: the level of TLS socket options, and the option that is set once the kernel encrypts what is sent.
_SOL_TLS, _TLS_TX = 282, 1
_CRYPTO_INFO = struct.Struct("HH")


class TlsSocket:
    """A non-blocking socket with TLS. `BlockingIOError` means: call again when the socket is
    readable (receiving) or writable (sending)."""

    __slots__ = ("_has_ended", "_tls", "read_wants_write")

    def __init__(self, tls: ssl.SSLSocket) -> None:
        self._tls = tls
        self._has_ended = False
        # Whether receiving cannot go on before something is sent: an answer to new keys of the peer.
        self.read_wants_write = False

    def fileno(self) -> int:
        return self._tls.fileno()

    def getpeercert(self) -> bytes | None:
        return self._tls.getpeercert(binary_form=True)

    def do_handshake(self) -> None:
        self._tls.do_handshake()

    def shutdown(self, how: int) -> None:
        self._tls.shutdown(how)

    @property
    def has_more(self) -> bool:
        """Whether a call of `recv_into` has something to return although the socket is not readable: OpenSSL
        decrypts whole records."""
        return self._has_ended or self._tls.pending() > 0

    @property
    def is_sent_by_kernel(self) -> bool:
        """Whether the kernel encrypts what is sent (kTLS), so that files can be sent with sendfile."""
        try:
            # Only version and cipher are asked for, not the keys.
            known = self._tls.getsockopt(_SOL_TLS, _TLS_TX, _CRYPTO_INFO.size)
        except OSError:
            return False
        return len(known) == _CRYPTO_INFO.size and any(known)

    def recv_into(self, view: memoryview) -> int:
        """Fill the view with what has arrived; 0 at the end of the stream."""
        count = 0
        room = len(view)
        try:
            while count < room and not self._has_ended:
                received = self._tls.recv_into(view[count:] if count else view)
                count += received
                if received == 0:
                    self._has_ended = True
                elif received < RECORD_BYTES_MAX and not self._tls.pending():
                    break
        except ssl.SSLWantReadError:
            if count == 0:
                raise BlockingIOError from None
        except ssl.SSLWantWriteError:
            self.read_wants_write = True
            if count == 0:
                raise BlockingIOError from None
        except OSError:
            # What came before is still good; the next call reports the end.
            self._has_ended = True
        return count

    def send(self, data: Bytes, flags: int = 0) -> int:
        """Send all of the data, at most PORTION_BYTES, or raise BlockingIOError: then the same bytes
        must be sent before anything else."""
        try:
            return self._tls.write(data)
        except ssl.SSLWantWriteError:
            raise BlockingIOError from None

    def close(self) -> None:
        """Say goodbye if that is possible at once, and close."""
        # An error is usual here: the peer has not said goodbye yet, and it is not waited for.
        with suppress(OSError, ValueError):
            self._tls.unwrap()
        self._tls.close()


def kernel_encrypts() -> bool:
    """Whether this kernel has TLS of its own (kTLS); whether OpenSSL uses it is known after a handshake."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as probe:
        try:
            probe.connect(server.getsockname())
            probe.setsockopt(socket.IPPROTO_TCP, _TCP_ULP, b"tls")
        except OSError:
            return False
    return True


# Linux: which protocol a TCP socket has above it.
_TCP_ULP = 31
