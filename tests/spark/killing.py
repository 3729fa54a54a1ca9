"""A Spark driver in its own session (setsid), which tests kill and start again."""

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.spark.processes import kill, session_of

from barnabas.spark.session import worker_python

WORKER = "pyspark.daemon"


class Driver:
    """ensure() starts it; its output is in `log`."""

    def __init__(self, command: Sequence[str | Path], folder: Path) -> None:
        self.log = folder / "driver.log"
        self.starts = 0
        self._command = command
        self._folder = folder
        self._sessions: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start it if it does not run: the first time, or after a kill."""
        if self._process is None or self._process.poll() is not None:
            self.start(self._command)

    def start(self, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
        self.starts += 1
        environment = os.environ | {"PYSPARK_PYTHON": worker_python()}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, cwd=self._folder, start_new_session=True
            )
        self._sessions.append(self._process.pid)
        return self._process

    def close(self) -> None:
        for leader in self._sessions:
            for process in session_of(leader):
                kill(process)
        if self._process is not None:
            self._process.wait()

    def _all(self) -> dict[int, str]:
        return {} if self._process is None else session_of(self._process.pid)

    def kill(self) -> None:
        """The driver and all of its processes at once."""
        assert self._process is not None
        for process in self._all():
            kill(process)
        self._process.wait()

    def kill_alone(self) -> None:
        """Its Python workers end later and may still run beside the next driver."""
        assert self._process is not None
        for process, command in self._all().items():
            if WORKER not in command:
                kill(process)
        self._process.wait()

    def kill_worker(self) -> None:
        """Kill a worker, whether it reads, encodes or commits."""
        workers = [process for process, command in self._all().items() if WORKER in command]
        if workers:
            kill(random.choice(workers))
