"""The console as a child process of a command that runs brokers, for their option `--console-port`.

It has a process of its own, so that it takes no time from the brokers."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.cli.console import check_installed

STOP_SECONDS_MAX = 10.0


class ConsoleProcess:
    """Prints its address when it is ready. It ends with the `with` block, and when this process dies."""

    def __init__(
        self,
        bootstrap: str,
        port: int,
        *,
        command_config: Path | None = None,
        pipelines: Sequence[Path] = (),
    ) -> None:
        check_installed()
        self._command = [sys.executable, "-m", "barnabas.cli.main", "console"]
        self._command += ["--bootstrap-server", bootstrap, "--port", str(port), "--parent", str(os.getpid())]
        if command_config is not None:
            self._command += ["--command-config", str(command_config)]
        for file in pipelines:
            self._command += ["--pipeline", str(file)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        return self

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def add_console_port(parser: argparse.ArgumentParser) -> None:
    """The option of the commands that can start a console."""
    parser.add_argument(
        "--console-port",
        type=int,
        metavar="PORT",
        help="also serve the web console at http://127.0.0.1:PORT; 0 means a free port",
    )
