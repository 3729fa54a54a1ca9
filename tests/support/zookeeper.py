"""One ZooKeeper for all tests of a process, and ways to break the sessions of a store."""

import asyncio
import atexit
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Self

from kazoo.client import KazooClient

from barnabas.metadata.zookeeper.store import ZooKeeperStore
from barnabas.testing.ports import free_ports
from barnabas.testing.zookeeper import ZooKeeper


@cache
def zookeeper() -> ZooKeeper:
    """A ZooKeeper that runs until the end of this process."""
    server = ZooKeeper().start()
    atexit.register(server.__exit__, None, None, None)
    return server


async def expire_session(store: ZooKeeperStore) -> None:
    """End the session of a store from another connection, as ZooKeeper does when it expires."""
    await asyncio.to_thread(
        _close_session, store.connection._client.client_id, store.connection.settings.servers
    )


def _close_session(client_id: tuple[int, bytes] | None, servers: str) -> None:
    other = KazooClient(hosts=servers, client_id=client_id)
    other.start(timeout=30)
    other.stop()
    other.close()


class Ensemble:
    """Three servers of `barnabas zookeeper start`, each of which can be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.ports = dict(enumerate(free_ports(3), start=1))
        self._servers = {number: "127.0.0.1:{}:{}".format(*free_ports(2)) for number in self.ports}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def connect(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def start(self, number: int) -> None:
        directory = self._directory / str(number)
        command = [sys.executable, "-m", "barnabas.cli.main", "zookeeper", "start", "--id", str(number)]
        command += ["--port", str(self.ports[number]), "--data-dir", str(directory)]
        for member, address in self._servers.items():
            command += ["--server", f"{member}={address}"]
        with (self._directory / f"{number}.log").open("ab") as output:
            # The command becomes the server, so the process can be killed.
            self._processes[number] = subprocess.Popen(command, stdout=output, stderr=output)

    def kill(self, number: int) -> None:
        process = self._processes.pop(number)
        process.kill()
        process.wait()

    def __enter__(self) -> Self:
        for number in self.ports:
            self.start(number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self._processes):
            self.kill(number)
