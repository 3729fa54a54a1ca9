"""A real ZooKeeper for a test, in a process of its own, on a free port with a temporary directory.

    with ZooKeeper() as zookeeper:
        store = await ZooKeeperStore.open(zookeeper.connect + "/some-cluster", ...)

It can be paused, continued, killed, and started again on the same port with the same data."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.testing.ports import ReservedPorts
from barnabas.testing.zookeeper_server import ServerSettings, ZooKeeperUnavailable, server_command

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 10.0
_POLL_SECONDS = 0.02


class ZooKeeper:
    """`data_dir` is where the data stays when the `with` block ends. `tick_ms` is the precision of session
    timeouts; the shortest session is two ticks. Without `sync_writes` changes survive kill(), but not a crash
    of the machine."""

    def __init__(
        self,
        *,
        port: int = 0,
        data_dir: Path | None = None,
        jars: Path | None = None,
        tick_ms: int = 200,
        sync_writes: bool = False,
    ) -> None:
        self._own_dir = Path(tempfile.mkdtemp(prefix="zookeeper-")) if data_dir is None else None
        self.data_dir = data_dir or self._own_dir or Path()
        self.port = port
        self._ports: ReservedPorts | None = None
        self._jars = jars
        self._tick_ms = tick_ms
        self._sync_writes = sync_writes
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def connect(self) -> str:
        """The value of zookeeper.connect; a chroot may be added."""
        return f"127.0.0.1:{self.port}"

    @property
    def output_file(self) -> Path:
        """The file that gets what the server prints."""
        return self.data_dir / "server.log"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        self.launch()
        self.wait_until_ready()
        return self

    def launch(self) -> None:
        """Start the process without waiting for it."""
        if self.port == 0:
            self._ports = ReservedPorts(1)
            (self.port,) = self._ports.numbers
        command = server_command(self._settings(), self._jars)
        with self.output_file.open("ab") as output:
            # A process group of its own: Ctrl-C on a terminal stops brokers first, then ZooKeeper.
            self._process = subprocess.Popen(command, stdout=output, stderr=output, process_group=0)

    def _settings(self) -> ServerSettings:
        return ServerSettings(self.port, self.data_dir, tick_ms=self._tick_ms, sync_writes=self._sync_writes)

    def stop(self) -> None:
        """Stop the process, also a paused one; the data stays until the `with` block ends."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """Send SIGKILL."""
        process = self._running()
        process.kill()
        process.wait()
        self._process = None

    def pause(self) -> None:
        """Send SIGSTOP: connections stay open, but nothing is answered."""
        process = self._running()
        process.send_signal(signal.SIGSTOP)
        # Returns when all threads have stopped, which takes a moment on a busy machine.
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)

    def resume(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Start again with the same port and data; stops a running server first."""
        self.stop()
        self.start()

    def output(self) -> str:
        """What the server printed so far."""
        return self.output_file.read_text()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self._remove_own_dir()
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
            self._remove_own_dir()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("this ZooKeeper is not running")
        return self._process

    def wait_until_ready(self) -> None:
        """Return when the server answers and accepts sessions."""
        process = self._running()
        deadline = time.monotonic() + START_SECONDS_MAX
        while not is_serving("127.0.0.1", self.port):
            if process.poll() is not None or time.monotonic() > deadline:
                code = process.poll()
                process.kill()
                process.wait()
                self._process = None
                raise ZooKeeperUnavailable(f"ZooKeeper did not start (exit {code}):\n{self.output()}")
            time.sleep(_POLL_SECONDS)

    def _remove_own_dir(self) -> None:
        if self._own_dir is not None:
            shutil.rmtree(self._own_dir, ignore_errors=True)


def is_serving(host: str, port: int) -> bool:
    """Whether a ZooKeeper there answers and accepts sessions."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1.0) as connection:
        connection.sendall(b"srvr")
        return connection.recv(64).startswith(b"Zookeeper version")
    return False
