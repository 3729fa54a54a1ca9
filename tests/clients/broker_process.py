"""A Barnabas broker in its own process, started as users start it; tests may kill it.

Loopback only; the port is the system's choice at the first start and stays the same after a restart."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "barnabas"
START_SECONDS_MAX = 30.0


class BrokerProcess:
    start_seconds_max = START_SECONDS_MAX

    def __init__(self, directory: Path, overrides: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.data_dir = directory / "data"
        self.overrides = dict(overrides or {})
        self.bootstrap = ""
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Return when the ready file exists: then the broker answers requests."""
        self.directory.mkdir(parents=True, exist_ok=True)
        ready_file = self.directory / "ready"
        ready_file.unlink(missing_ok=True)
        port = self.bootstrap.rpartition(":")[2] or "0"
        command = [str(PROGRAM), "start", "--port", port]
        command += ["--data-dir", str(self.data_dir), "--ready-file", str(ready_file)]
        for key, value in self.overrides.items():
            command += ["--override", f"{key}={value}"]
        with (self.directory / "broker.log").open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        self.bootstrap = self._ready(ready_file)

    def _ready(self, ready_file: Path) -> str:
        assert self.process is not None
        deadline = time.monotonic() + self.start_seconds_max
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the broker ended at start:\n{self.log_tail()}")
            with contextlib.suppress(FileNotFoundError):
                if address := ready_file.read_text().strip():
                    return address
            time.sleep(0.002)
        self.stop(signal.SIGKILL)
        raise AssertionError(
            f"the broker was not ready within {self.start_seconds_max:.0f} s:\n{self.log_tail()}"
        )

    def log_text(self) -> str:
        return (self.directory / "broker.log").read_text(errors="replace")

    def log_tail(self) -> str:
        return self.log_text()[-4000:]

    def stop(self, with_signal: int = signal.SIGTERM) -> int:
        """Send the signal and wait for the end. Returns the exit status."""
        if self.process is None:
            return 0
        os.kill(self.process.pid, with_signal)
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired as late:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the broker did not stop:\n{self.log_tail()}") from late
        finally:
            self.process = None
        return status

    def restart(self, with_signal: int = signal.SIGTERM) -> None:
        self.stop(with_signal)
        self.start()


@contextlib.contextmanager
def running_broker(directory: Path, overrides: Mapping[str, str] | None = None) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(directory, overrides)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
