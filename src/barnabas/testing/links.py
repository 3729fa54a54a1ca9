"""Connections between the processes of a test's cluster that a test can cut or degrade, as a network would.

Each broker advertises ports of this process to the others and to clients; they pass the bytes on. Each broker
reaches ZooKeeper through such ports, too. While a link is cut, its bytes stay where they are: connections do
not break, nothing is answered, and after `heal` everything goes on, as with TCP over a network that was
away."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from barnabas.testing.relay import Direction, OpenTap, Quality, Tap, relay

ZOOKEEPER = "zookeeper"
CLIENT = "client"
Member = int | str
Way = tuple[Member, Member]
_T = TypeVar("_T")


class Links:
    """`pids` returns the process id of each running broker: it tells which broker has opened a connection.
    `reach` returns the port through which a port is reached: the same, or one of another network."""

    def __init__(
        self, pids: Callable[[], Mapping[int, int]], reach: Callable[[int], int] = lambda port: port
    ) -> None:
        self._pids = pids
        self._reach = reach
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="links", daemon=True)
        self._directions: dict[Way, Direction] = {}
        self._taps: dict[Way, Callable[[], Tap]] = {}
        self._faults: set[LinkFault] = set()
        self._servers: list[asyncio.Server] = []
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def add(self, target: Member, target_port: int, source: Member | None = None) -> int:
        """A new port that leads to `target`. Without `source`, a connection belongs to the broker whose
        process has opened it."""
        return self._call(self._listen(target, self._reach(target_port), source))

    def tap(self, source: Member, target: Member, make: Callable[[], Tap]) -> None:
        """`make` a tap for each new connection that `source` opens to `target`."""
        self._taps[source, target] = make

    def cut(self, ways: Collection[Way]) -> "LinkFault":
        """No byte passes these ways, each from one member to another, until heal()."""
        return LinkFault(self, ways, None)

    def degrade(self, ways: Collection[Way], quality: Quality) -> "LinkFault":
        """Bytes pass these ways with this quality, in addition to what other faults do to them."""
        return LinkFault(self, ways, quality)

    def heal(self) -> None:
        """End all faults."""
        for fault in list(self._faults):
            fault.heal()

    def close(self) -> None:
        if self._thread.is_alive():
            self.heal()
            self._call(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def begin(self, fault: "LinkFault") -> None:
        self._faults.add(fault)
        self._call(self._set(fault, begins=True))

    def end(self, fault: "LinkFault") -> None:
        if fault in self._faults:
            self._faults.remove(fault)
            self._call(self._set(fault, begins=False))

    def _call(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    # ---- in the loop

    async def _set(self, fault: "LinkFault", *, begins: bool) -> None:
        for way in fault.ways:
            direction = self._direction(*way)
            if fault.quality is None:
                direction.cuts += 1 if begins else -1
            elif begins:
                direction.qualities.append(fault.quality)
            else:
                direction.qualities.remove(fault.quality)
            direction.changed()

    def _direction(self, source: Member, target: Member) -> Direction:
        return self._directions.setdefault((source, target), Direction())

    async def _listen(self, target: Member, target_port: int, source: Member | None) -> int:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            port: int = writer.get_extra_info("peername")[1]
            own_port: int = writer.get_extra_info("sockname")[1]
            # A connection that no broker has opened, such as a test's own, cannot be cut.
            owner: Member | None = self._owner_of(port, own_port) if source is None else source
            owner = "unknown" if owner is None else owner
            there, back = self._direction(owner, target), self._direction(target, owner)
            tap = self._taps.get((owner, target), OpenTap)()
            with contextlib.closing(writer):
                await there.passed()
                try:
                    far = await asyncio.open_connection("127.0.0.1", target_port)
                except OSError:
                    # That nobody listens there must come through as well.
                    await back.passed()
                    return
                with contextlib.closing(far[1]):
                    await relay((reader, writer), far, there, back, tap)

        server = await asyncio.start_server(accepted, "127.0.0.1", 0)
        self._servers.append(server)
        listening_port: int = server.sockets[0].getsockname()[1]
        return listening_port

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _owner_of(self, port: int, own_port: int) -> int | None:
        """The broker whose process has opened the connection from this port."""
        inode = socket_inode(port, own_port)
        for broker_id, pid in self._pids().items():
            if inode is not None and _has_socket(pid, inode):
                return broker_id
        return None


class LinkFault:
    """Links that are cut or degraded until heal(), or until the end of a `with` block. Other faults of the
    same links stay."""

    def __init__(self, links: Links, ways: Collection[Way], quality: Quality | None) -> None:
        self._links = links
        self.ways = tuple(ways)
        self.quality = quality
        links.begin(self)

    def heal(self) -> None:
        self._links.end(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()


def socket_inode(port: int, peer_port: int) -> str | None:
    """The inode of the socket with this port of 127.0.0.1 that is connected to that one. Connections to other
    ports may have the same port, also those that have just ended."""
    ends = [f"0100007F:{number:04X}" for number in (port, peer_port)]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1:3] == ends:
            return fields[9]
    return None


def _has_socket(pid: int, inode: str) -> bool:
    name = f"socket:[{inode}]"
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if str(path.readlink()) == name:
                    return True
    return False
