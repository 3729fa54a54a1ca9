"""One broker in a process of its own, started as users start it: `barnabas start`.

Port 0 is any free port, which this object keeps: a later start takes the same one again."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from barnabas.testing.ports import ReservedPorts

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 60.0
POLL_SECONDS = 0.01
OUTPUT_TAIL_CHARACTERS = 8000


class BrokerProcess:
    """`output_file` gets everything that the process prints, of all its starts. `environment` has variables
    that the process gets at its next start, in addition to those of this process."""

    def __init__(
        self,
        broker_id: int,
        data_dir: Path,
        overrides: Mapping[str, str],
        output_file: Path,
        port: int = 0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.id = broker_id
        self.data_dir = data_dir
        self._ports = ReservedPorts(1) if port == 0 else None
        self.port = port if self._ports is None else self._ports.numbers[0]
        self.environment = {} if environment is None else environment
        # Settings that must not be on a command line, where other users of the machine see them.
        self.config_file: Path | None = None
        self._overrides = dict(overrides)
        self._output_file = output_file
        self._ready_file = data_dir / ".ready"
        self._process: subprocess.Popen[bytes] | None = None
        self._is_paused = False

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError(f"broker {self.id} is not running")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def is_answering(self) -> bool:
        """Whether it runs and is not paused."""
        return self.is_running and not self._is_paused

    @property
    def exit_code(self) -> int | None:
        """The exit code of a process that ended by itself; a negative number is a signal."""
        return None if self._process is None else self._process.poll()

    @property
    def command(self) -> list[str]:
        """Starts this broker again, with the same port and data."""
        command = [sys.executable, "-m", "barnabas.cli.main", "start", "--port", str(self.port)]
        command += ["--data-dir", str(self.data_dir)]
        if self.config_file is not None:
            command += ["--config", str(self.config_file)]
        for key, value in {"broker.id": str(self.id), **self._overrides}.items():
            command += ["--override", f"{key}={value}"]
        return command

    def start(self) -> None:
        """Start the process without waiting for it; see wait_until_ready."""
        if self.is_running:
            raise RuntimeError(f"broker {self.id} is running already")
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._ready_file.unlink(missing_ok=True)
        command = [*self.command, "--ready-file", str(self._ready_file)]
        with self._output_file.open("ab") as output:
            # A process group of its own: Ctrl-C on the terminal must not stop all brokers at once.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
                env={**os.environ, **self.environment},
            )
        self._is_paused = False

    def wait_until_ready(self) -> None:
        """Return when the broker answers requests."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._read_address():
            if not self.is_running:
                raise RuntimeError(
                    f"broker {self.id} did not start (exit {self.exit_code}):\n{self.output_tail()}"
                )
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"broker {self.id} was not ready within {START_SECONDS_MAX:.0f} s:\n{self.output_tail()}"
                )
            time.sleep(POLL_SECONDS)

    def _read_address(self) -> bool:
        try:
            address = self._ready_file.read_text().strip()
        except FileNotFoundError:
            return False
        self.port = int(address.rpartition(":")[2])
        return True

    def terminate(self) -> None:
        """Send SIGTERM without waiting: the broker shuts down cleanly."""
        self.resume()
        if self.is_running:
            os.kill(self.pid, signal.SIGTERM)

    def stop(self) -> int:
        """Shut down cleanly (SIGTERM). Returns the exit code."""
        self.terminate()
        return self._wait(STOP_SECONDS_MAX)

    def kill(self) -> None:
        """End the process at once (SIGKILL), also a paused one."""
        if self.is_running:
            os.kill(self.pid, signal.SIGKILL)
        self._wait(STOP_SECONDS_MAX)

    def pause(self) -> None:
        """Stop the process in the middle of whatever it does (SIGSTOP), until resume()."""
        os.kill(self.pid, signal.SIGSTOP)
        # The signal works a moment later. The result is left for Popen to collect (WNOWAIT).
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self._is_paused = True

    def resume(self) -> None:
        """Let a paused process go on (SIGCONT)."""
        if self._is_paused and self.is_running:
            os.kill(self.pid, signal.SIGCONT)
        self._is_paused = False

    def _wait(self, seconds: float) -> int:
        if self._process is None:
            return 0
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired as late:
            self._process.kill()
            self._process.wait()
            raise RuntimeError(
                f"broker {self.id} did not stop within {seconds:.0f} s:\n{self.output_tail()}"
            ) from late
        finally:
            self._process = None
            self._is_paused = False

    def output(self) -> str:
        """What the process has printed so far, in all its starts."""
        with contextlib.suppress(FileNotFoundError):
            return self._output_file.read_text(errors="replace")
        return ""

    def output_tail(self) -> str:
        return self.output()[-OUTPUT_TAIL_CHARACTERS:]
