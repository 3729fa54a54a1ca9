"""The process of a PacketNetwork, in which packets are delayed, lost, duplicated and reordered.

It has a network namespace with one interface whose other end is this program: every IP packet passes through
it. A connection from 127.0.0.1 is carried through that network by TCP of the kernel. Both its ends are in the
same namespace: the kernel would not send packets to its own address, so one end connects to an address that
does not exist, and this program exchanges source and target of each packet. (A checksum is a sum, so it stays
right.)

When the process ends, the namespace is gone. Commands come as JSON lines on the input."""

import asyncio
import contextlib
import ctypes
import fcntl
import json
import os
import random
import socket
import struct
import sys
from typing import Any

from barnabas.testing.relay import Direction, OpenTap, Streams, relay

OWN_ADDRESS, OTHER_ADDRESS = "10.9.0.1", "10.9.0.2"
INTERFACE = b"packets"
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFFLAGS = 0x8916, 0x891C, 0x8914
IFF_UP = 0x1
PACKET_BYTES_MAX = 1 << 16
# As long as a router's queue is: later packets are dropped.
QUEUE_SECONDS_MAX = 1.0


class Namespace:
    """Makes sockets in a new network namespace; the process itself stays in the old one."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._outside = os.open("/proc/self/ns/net", os.O_RDONLY)
        self._checked(self._libc.unshare(CLONE_NEWNET), "a new network namespace")
        self._inside = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.device = self._make_device()
        self._enter(self._outside)

    def _make_device(self) -> int:
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", INTERFACE, IFF_TUN | IFF_NO_PI))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for request, address in ((SIOCSIFADDR, OWN_ADDRESS), (SIOCSIFNETMASK, "255.255.255.0")):
                place = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
                fcntl.ioctl(control, request, struct.pack("16s16s8x", INTERFACE, place))
            fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", INTERFACE, IFF_UP))
        return device

    def socket(self) -> socket.socket:
        self._enter(self._inside)
        try:
            made = socket.socket()
        finally:
            self._enter(self._outside)
        made.setblocking(False)
        return made

    def _enter(self, namespace: int) -> None:
        self._checked(self._libc.setns(namespace, CLONE_NEWNET), "a change of the network namespace")

    @staticmethod
    def _checked(result: int, what: str) -> None:
        if result != 0:
            raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


class Wire:
    """Takes each packet from the interface, and puts it back later, or not at all."""

    def __init__(self, device: int, loop: asyncio.AbstractEventLoop) -> None:
        self._device, self._loop = device, loop
        self.quality: dict[str, float] = {}
        self.counts = {"packets": 0, "lost": 0, "duplicated": 0, "dropped": 0, "reordered": 0}
        self._free_at = 0.0
        self._last_number, self._last_arrived = 0, 0
        self._chance = random.Random(0)
        loop.add_reader(device, self._readable)

    def _readable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(64):
                packet = os.read(self._device, PACKET_BYTES_MAX)
                if packet[0] >> 4 == 4:
                    self._take(packet[:12] + packet[16:20] + packet[12:16] + packet[20:])

    def _take(self, packet: bytes) -> None:
        self.counts["packets"] += 1
        if self._happens("loss"):
            self.counts["lost"] += 1
            return
        self._send(packet)
        if self._happens("duplicates"):
            self.counts["duplicated"] += 1
            self._send(packet)

    def _send(self, packet: bytes) -> None:
        now, quality = self._loop.time(), self.quality
        self._free_at = max(self._free_at, now)
        if "bytes_per_second" in quality:
            self._free_at += len(packet) / quality["bytes_per_second"]
        if self._free_at - now > QUEUE_SECONDS_MAX:
            self.counts["dropped"] += 1
            return
        jitter = self._chance.uniform(-1, 1) * quality.get("jitter_ms", 0.0)
        late = max(0.0, quality.get("delay_ms", 0.0) + jitter)
        self._last_number += 1
        self._loop.call_at(self._free_at + late / 1000, self._arrive, packet, self._last_number)

    def _arrive(self, packet: bytes, number: int) -> None:
        if number < self._last_arrived:
            self.counts["reordered"] += 1
        self._last_arrived = number
        with contextlib.suppress(BlockingIOError):
            os.write(self._device, packet)

    def _happens(self, what: str) -> bool:
        return self._chance.random() < self.quality.get(what, 0.0)


class Carrier:
    """Carries connections to ports of 127.0.0.1 through the network of packets."""

    def __init__(self) -> None:
        self._namespace = Namespace()
        self._loop = asyncio.get_running_loop()
        self.wire = Wire(self._namespace.device, self._loop)
        self._servers: list[asyncio.Server] = []

    async def port_to(self, target_port: int) -> int:
        """A new port of 127.0.0.1 that leads to another one."""

        async def arrived(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.closing(writer), contextlib.suppress(OSError):
                await self._carry((reader, writer), await asyncio.open_connection("127.0.0.1", target_port))

        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.closing(writer), contextlib.suppress(OSError):
                through = self._namespace.socket()
                through.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await self._loop.sock_connect(through, (OTHER_ADDRESS, inner_port))
                await self._carry((reader, writer), await asyncio.open_connection(sock=through))

        listening = self._namespace.socket()
        listening.bind((OWN_ADDRESS, 0))
        inner_port: int = listening.getsockname()[1]
        self._servers.append(await asyncio.start_server(arrived, sock=listening))
        self._servers.append(await asyncio.start_server(accepted, "127.0.0.1", 0))
        outer_port: int = self._servers[-1].sockets[0].getsockname()[1]
        return outer_port

    async def _carry(self, near: Streams, far: Streams) -> None:
        with contextlib.closing(far[1]):
            await relay(near, far, Direction(), Direction(), OpenTap())

    async def answer(self, command: dict[str, Any]) -> Any:
        if "port_to" in command:
            return await self.port_to(command["port_to"])
        if "quality" in command:
            self.wire.quality = command["quality"]
        return self.wire.counts


async def serve() -> None:
    carrier = Carrier()
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print(json.dumps("ready"), flush=True)
    while line := await reader.readline():
        print(json.dumps(await carrier.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(serve())
