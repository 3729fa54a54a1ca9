"""Connections between the processes of a test's cluster that can be cut, as a broken network would cut them.

Each broker advertises a port of this process to the others; it passes the bytes on. Each broker reaches
ZooKeeper through such a port, too. While a link is cut, its bytes stay where they are: connections do not
break, nothing is answered, and after `heal` everything goes on, as with TCP over a network that was away."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

ZOOKEEPER = "zookeeper"
Member = int | str
_T = TypeVar("_T")
CHUNK_BYTES = 1 << 16


class Links:
    """`pids` returns the process id of each running broker: it tells which broker has opened a connection."""

    def __init__(self, pids: Callable[[], Mapping[int, int]]) -> None:
        self._pids = pids
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="links", daemon=True)
        self._open: dict[frozenset[Member], asyncio.Event] = {}
        self._servers: list[asyncio.Server] = []
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def add(self, target: Member, target_port: int, source: Member | None = None) -> int:
        """A new port that leads to `target`. Without `source`, a connection belongs to the broker whose
        process has opened it."""
        return self._call(self._listen(target, target_port, source))

    def cut(self, one: Member, other: Member) -> None:
        self._call(self._set(one, other, is_open=False))

    def heal(self) -> None:
        """Join all links again."""
        self._call(self._open_all())

    def close(self) -> None:
        if self._thread.is_alive():
            self._call(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _call(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    # ---- in the loop

    def _link(self, one: Member, other: Member) -> asyncio.Event:
        """Set while bytes may pass between the two."""
        pair = frozenset((one, other))
        if pair not in self._open:
            self._open[pair] = asyncio.Event()
            self._open[pair].set()
        return self._open[pair]

    async def _set(self, one: Member, other: Member, *, is_open: bool) -> None:
        link = self._link(one, other)
        if is_open:
            link.set()
        else:
            link.clear()

    async def _open_all(self) -> None:
        for link in self._open.values():
            link.set()

    async def _listen(self, target: Member, target_port: int, source: Member | None) -> int:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            port: int = writer.get_extra_info("peername")[1]
            owner = source if source is not None else self._owner_of(port)
            # A connection that no broker has opened, such as a test's own, cannot be cut.
            link = self._link(target, "unknown" if owner is None else owner)
            with contextlib.closing(writer), contextlib.suppress(OSError):
                await link.wait()
                other_reader, other_writer = await asyncio.open_connection("127.0.0.1", target_port)
                with contextlib.closing(other_writer):
                    await _pump_both((reader, writer), (other_reader, other_writer), link)

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

    def _owner_of(self, port: int) -> int | None:
        """The broker whose process has opened the connection from this port."""
        inode = socket_inode(port)
        for broker_id, pid in self._pids().items():
            if inode is not None and _has_socket(pid, inode):
                return broker_id
        return None


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _pump_both(one: Streams, other: Streams, link: asyncio.Event) -> None:
    """Pass bytes on in both directions until one side closes."""
    pumps = [
        asyncio.ensure_future(_pump(one[0], other[1], link)),
        asyncio.ensure_future(_pump(other[0], one[1], link)),
    ]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: asyncio.Event) -> None:
    while data := await reader.read(CHUNK_BYTES):
        await link.wait()
        writer.write(data)
        await writer.drain()
    # The end of a connection does not pass a cut link either.
    await link.wait()


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 that are free now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def socket_inode(port: int) -> str | None:
    """The inode of the local socket that has this port of 127.0.0.1."""
    local = f"0100007F:{port:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1] == local:
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
