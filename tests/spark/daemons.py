"""Spark's own daemons, started by PySpark's own scripts: masters, workers, Connect servers."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyspark

SCRIPTS = Path(pyspark.__file__).parent / "bin"
PATIENCE_SECONDS = 120.0


class Daemon:
    """A process of Spark's, which one of its scripts starts; known by its log, in `folder`."""

    def __init__(
        self, folder: Path, name: str, script: str, *arguments: str, python: Path | str = sys.executable
    ) -> None:
        self._log = folder / f"{name}.log"
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_MEMORY": "768m",
            "SPARK_WORKER_DIR": str(folder / f"{name}-work"),
            "PYSPARK_PYTHON": str(python),
        }
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [SCRIPTS / script, *arguments],
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )

    def logged(self, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            text = self._log.read_text(errors="replace")
            match = re.search(pattern, text)
            if match:
                return match[1]
            assert self._process.poll() is None, text[-3000:]
            time.sleep(0.2)
        raise AssertionError(f"{self._log.name} never said {pattern}:\n{self._log.read_text()[-3000:]}")

    def stop(self) -> None:
        # The script starts Java as its child: both are in a group of their own. They may have ended.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
