"""A broker for a test: in this process (a thread with its own event loop) or in a process of its own.

It has a free port and a temporary directory, which is removed when the `with` block ends.

    with Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.clock import Clock

START_SECONDS_MAX = 30.0
# Retention does not run while tests run, so that records with old timestamps stay.
KEEP_OLD_RECORDS = {"log.retention.check.interval.ms": "86400000"}
# The first rebalance of a group starts at once; in production it waits three seconds for more members.
TEST_DEFAULTS = {"group.initial.rebalance.delay.ms": "0", **KEEP_OLD_RECORDS}


class Broker:
    """A broker for a test, for use in a `with` statement. `overrides` are Kafka's config keys. `subprocess`
    starts a process instead of a thread.

    `data_dir` is where the data stays when the `with` block ends. `clock` is what a broker in this process
    reads the time from, for example a `barnabas.clock.FakeClock`."""

    def __init__(
        self,
        overrides: Mapping[str, str] | None = None,
        *,
        subprocess: bool = False,
        data_dir: Path | None = None,
        port: int = 0,
        clock: Clock | None = None,
    ) -> None:
        if subprocess and clock is not None:
            raise ValueError(
                "clock needs a broker in this process: Broker(subprocess=True) uses the system's clock"
            )
        self._overrides = {**TEST_DEFAULTS, **(overrides or {})}
        self._is_subprocess = subprocess
        self._clock = clock
        self._own_dir = Path(tempfile.mkdtemp(prefix="barnabas-")) if data_dir is None else None
        self.data_dir = data_dir or self._own_dir or Path()
        self.port = port
        self._process: Process | None = None
        self._thread: _BrokerThread | None = None

    @property
    def bootstrap(self) -> str:
        """The address of the broker, for `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The id of the process that the broker runs in."""
        return os.getpid() if self._process is None else self._process.pid

    def start(self) -> Self:
        """Return when the broker answers requests; the `with` statement calls this."""
        if self._is_subprocess:
            self._start_process()
        else:
            self._thread = _BrokerThread(self.data_dir, self.port, self._overrides, self._clock)
            self.port = self._thread.start_and_wait()
        return self

    def stop(self) -> None:
        """Shut down cleanly; the data stays until the `with` block ends."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(START_SECONDS_MAX)
            self._process = None
        if self._thread is not None:
            self._thread.stop_and_wait()
            self._thread = None

    def kill(self) -> None:
        """Send SIGKILL; only for a broker in a process of its own."""
        if self._process is None:
            raise RuntimeError("kill() needs a running Broker(subprocess=True)")
        self._process.kill()
        self._process.wait()
        self._process = None

    def restart(self) -> None:
        """Start again with the same port and data; stops a running broker first."""
        if self._process is not None or self._thread is not None:
            self.stop()
        self.start()

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

    def _remove_own_dir(self) -> None:
        if self._own_dir is not None:
            shutil.rmtree(self._own_dir, ignore_errors=True)

    def _start_process(self) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        ready = self.data_dir / ".ready"
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "barnabas.cli.main", "start", "--port", str(self.port)]
        command += ["--data-dir", str(self.data_dir), "--ready-file", str(ready)]
        for key, value in self._overrides.items():
            command += ["--override", f"{key}={value}"]
        with (self.data_dir / ".server.log").open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not ready.exists() or not ready.read_text().strip():
            if self._process.poll() is not None or time.monotonic() > deadline:
                code = self._process.poll()
                self._process.kill()
                self._process.wait()
                raise RuntimeError(f"the broker did not start (exit {code}):\n{self.output()}")
            time.sleep(0.01)
        self.port = int(ready.read_text().strip().rpartition(":")[2])

    def output(self) -> str:
        """What a broker in a process of its own printed so far."""
        return (self.data_dir / ".server.log").read_text()


# The parameter `subprocess` of Broker hides the module.
Process = subprocess.Popen[bytes]


class _BrokerThread:
    """A broker with an event loop of its own, in a thread of the test's process."""

    def __init__(self, data_dir: Path, port: int, overrides: Mapping[str, str], clock: Clock | None) -> None:
        self._thread = threading.Thread(target=self._run, name="barnabas-broker", daemon=True)
        self._arguments = (data_dir, port, overrides)
        self._clock = clock
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._port = 0

    def start_and_wait(self) -> int:
        self._thread.start()
        self._ready.wait(START_SECONDS_MAX)
        if self._failure is not None:
            raise self._failure
        return self._port

    def stop_and_wait(self) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_SECONDS_MAX)
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # raised again in the test's thread
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        from barnabas.broker.broker import Broker as RealBroker
        from barnabas.broker.startup import broker_config

        data_dir, port, overrides = self._arguments
        broker = RealBroker(broker_config(None, data_dir, port, overrides), self._clock)
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await broker.start()
        self._port = broker.endpoints[0].port
        self._ready.set()
        await self._stop.wait()
        await broker.stop()
