"""Addresses that a server cannot listen on: why, and what to do."""

import errno
import socket


def why_not_bound(host: str, port: int, error: OSError) -> str:
    """One sentence for the operator."""
    where = f"cannot listen on {host or '*'}:{port}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{where}: another process uses this port. Stop it (`ss -ltnp 'sport = :{port}'` shows it), "
            "or choose another port."
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{where}: this machine does not have that address. `ip address` shows those that it has."
    if isinstance(error, socket.gaierror):
        return f"{where}: the name {host} cannot be resolved. Check its spelling, or use an IP address."
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{where}: permission denied. Ports below 1024 need special rights: choose a higher one."
    return f"{where}: {error.strerror}."
