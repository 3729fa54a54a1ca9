"""Why a connection could not be opened, in words."""

import errno
import re
import socket

_ERROR_NUMBER = re.compile(r"\[Errno (\d+)\]")


def why_not_connected(host: str, port: int, error: OSError | UnicodeError) -> str:
    if isinstance(error, socket.gaierror | UnicodeError):
        # UnicodeError: the name cannot even be encoded for a lookup.
        return f"the name {host!r} does not resolve ({getattr(error, 'strerror', None) or error})"
    # A name may have several addresses: then asyncio puts the texts of all errors into one.
    if set(_ERROR_NUMBER.findall(str(error))) == {str(errno.ECONNREFUSED)}:
        return f"connection refused by {host}:{port}"
    # An error without a text: the connection was closed during the TLS handshake.
    why = str(error) or "it closed the connection instead of a TLS handshake; check security.protocol"
    return f"cannot connect to {host}:{port}: {why}"
