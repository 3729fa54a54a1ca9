"""Several ZooKeeper servers for a test, which elect a leader and go on while most of them run.

with ZooKeeperEnsemble(3) as ensemble:
    ensemble.servers[1].kill()
"""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.testing.ports import ReservedPorts
from barnabas.testing.zookeeper import ZooKeeper
from barnabas.testing.zookeeper_server import ServerSettings


class EnsembleServer(ZooKeeper):
    """Server `server_id` of an ensemble. It serves when most servers run."""

    def __init__(self, server_id: int, addresses: dict[int, str], data_dir: Path, port: int) -> None:
        super().__init__(port=port, data_dir=data_dir)
        self._server_id = server_id
        self._addresses = addresses

    def _settings(self) -> ServerSettings:
        return replace(super()._settings(), servers=self._addresses, server_id=self._server_id)


class ZooKeeperEnsemble:
    """Servers 1 to `count`. An ensemble of one is a ZooKeeper alone. `data_dir` is where the data stays when
    the `with` block ends."""

    def __init__(self, count: int = 3, *, data_dir: Path | None = None) -> None:
        self._own_dir = Path(tempfile.mkdtemp(prefix="zookeeper-")) if data_dir is None else None
        directory = data_dir or self._own_dir or Path()
        self._ports = ReservedPorts(3 * count)
        ports = self._ports.numbers
        if count == 1:
            self.servers: dict[int, ZooKeeper] = {1: ZooKeeper(port=ports[0], data_dir=directory)}
            return
        addresses = {
            number: f"127.0.0.1:{ports[3 * number - 2]}:{ports[3 * number - 1]}"
            for number in range(1, count + 1)
        }
        self.servers = {
            number: EnsembleServer(number, addresses, directory / str(number), ports[3 * number - 3])
            for number in addresses
        }

    @property
    def connect(self) -> str:
        """The value of zookeeper.connect; a chroot may be added."""
        return ",".join(server.connect for server in self.servers.values())

    def start(self) -> Self:
        """Start the servers that do not run; return when all serve."""
        for server in self.servers.values():
            if not server.is_running:
                server.launch()
        for server in self.servers.values():
            server.wait_until_ready()
        return self

    def stop(self) -> None:
        """Stop all servers, also paused ones."""
        for server in self.servers.values():
            server.stop()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            if self._own_dir is not None:
                shutil.rmtree(self._own_dir, ignore_errors=True)
