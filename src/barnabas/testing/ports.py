"""Ports of 127.0.0.1 that are free, and stay free for those who chose them.

A port that is only looked up may be taken by somebody else before it is used, or while the broker that had it
is down. Here a socket that does not listen keeps each port: Linux lets a server with SO_REUSEADDR listen on
such a port, as brokers and Java's servers do, and gives it to nobody who asks for a free one, ever."""

import contextlib
import os
import random
import socket
import weakref
from pathlib import Path

LOWEST_PORT, HIGHEST_PORT = 10_000, 65_535
# Not the generator of `random`: tests with the same seed would all begin with the same ports.
_chance = random.SystemRandom()


class ReservedPorts:
    """`count` different ports, which are kept as long as this object lives. The system gives none of them to
    connections; if it uses all ports for connections, any will do."""

    def __init__(self, count: int) -> None:
        first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
        candidates = range(LOWEST_PORT, first_given) or range(LOWEST_PORT, HIGHEST_PORT + 1)
        self.numbers: list[int] = []
        descriptors: list[int] = []
        weakref.finalize(self, _close_all, descriptors)
        while len(self.numbers) < count:
            port = _chance.choice(candidates)
            with socket.socket() as holder, contextlib.suppress(OSError):
                # Without SO_REUSEADDR this fails if anybody else has the port, also without listening.
                holder.bind(("127.0.0.1", port))
                holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                descriptors.append(holder.detach())
                self.numbers.append(port)


_kept: list[ReservedPorts] = []


def free_ports(count: int) -> list[int]:
    """Ports that are kept until this process ends."""
    _kept.append(ReservedPorts(count))
    return list(_kept[-1].numbers)


def _close_all(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
