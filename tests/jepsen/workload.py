"""The load of a run: client processes that write and read at random, and record what they are told.

The clients are in processes of their own, the drivers, so that they can be killed, and paused, too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from tests.jepsen.clients import prepare
from tests.jepsen.plans import DriverPlan, Load, ProcessPlan, Topic

ROOT = Path(__file__).parents[2]
POLL_SECONDS = 0.05
PROGRESS_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 120.0


class WorkloadError(Exception):
    """A client did what no client may do, or does not go on."""


class Driver:
    """A process with clients (client_driver.py)."""

    def __init__(self, plan: DriverPlan, errors: Path) -> None:
        self.plan = plan
        self.done: dict[int, int] = {process.number: 0 for process in plan.processes}
        self.failures: list[str] = []
        self.has_ended = False
        self._errors = errors
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        with errors.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.jepsen.client_driver"],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                # Ctrl-C on the terminal is for the test, which ends its clients.
                process_group=0,
            )
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()
        self._tell(plan.to_json())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        print(line, file=self._process.stdin, flush=True)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            self.done |= {int(number): done for number, done in message.get("done", {}).items()}
            self.has_ended |= "ended" in message
            if "failure" in message:
                self.failures.append(message["failure"])

    def check(self) -> None:
        if self.failures:
            raise WorkloadError("\n".join(self.failures))
        if not self.is_running and not self.has_ended:
            raise WorkloadError(f"the clients have ended: {self._errors.read_text()[-4000:]}")

    def ask_to_stop(self) -> None:
        if self.is_running:
            self._tell("stop")

    def wait(self) -> None:
        self._process.wait(STOP_SECONDS_MAX)
        self._close()

    def kill(self) -> None:
        """Without a word (SIGKILL)."""
        self._process.kill()
        self._process.wait()
        self._close()

    def _close(self) -> None:
        self._listening.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def show_stacks(self) -> None:
        """What each client is waiting for, in the file with the errors."""
        if self.is_running:
            os.kill(self.pid, signal.SIGUSR1)

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


class Workload:
    """The drivers of one run. `directory` gets the history files."""

    def __init__(
        self, load: Load, name: str, seed: int, bootstrap: str, topics: tuple[Topic, Topic], directory: Path
    ) -> None:
        events, copies = topics
        self._base = DriverPlan(bootstrap, "", seed, events, copies, [])
        self._directory = directory
        self._files = count(1)
        self._numbers = count(1001)
        processes = list(load.processes(name))
        for each in load.libraries:
            prepare(each)
        self.drivers = [
            self._start(processes[place :: load.drivers])
            for place in range(min(load.drivers, len(processes)))
        ]

    def _start(self, processes: Sequence[ProcessPlan]) -> Driver:
        number = next(self._files)
        history = self._directory / f"history-{number}.jsonl"
        plan = replace(self._base, history=str(history), processes=list(processes))
        return Driver(plan, self._directory / f"clients-{number}.log")

    def check(self) -> None:
        for driver in self.drivers:
            driver.check()

    @property
    def done(self) -> dict[int, int]:
        """How many operations of each process have succeeded."""
        return {number: done for driver in self.drivers for number, done in driver.done.items()}

    def wait_for_progress(self, operations: int = 3, kinds: Collection[str] = ()) -> None:
        """Return when each process (of these kinds) has done so many more operations with success."""
        plans = [plan for driver in self.drivers for plan in driver.plan.processes]
        before = self.done
        targets = {
            plan.number: before[plan.number] + operations for plan in plans if not kinds or plan.kind in kinds
        }
        deadline = time.monotonic() + PROGRESS_SECONDS_MAX
        while late := [number for number, target in targets.items() if self.done[number] < target]:
            self.check()
            if time.monotonic() > deadline:
                for driver in self.drivers:
                    driver.show_stacks()
                waiting = [
                    f"{plan.kind}-{plan.number} ({plan.library})" for plan in plans if plan.number in late
                ]
                raise WorkloadError(f"no progress within {PROGRESS_SECONDS_MAX:.0f} s: {', '.join(waiting)}")
            time.sleep(POLL_SECONDS)

    def bounce(self, place: int) -> None:
        """Kill the clients of one driver (SIGKILL), and let new ones take over: with the same groups and
        transactional ids, but other numbers in the history."""
        former = self.drivers[place]
        former.kill()
        plans = [replace(plan, number=next(self._numbers)) for plan in former.plan.processes]
        self.drivers[place] = self._start(plans)

    def stop(self) -> None:
        """Let each process finish what it does, and close its clients."""
        for driver in self.drivers:
            driver.ask_to_stop()
        for driver in self.drivers:
            driver.wait()
        self.check()

    def kill(self) -> None:
        for driver in self.drivers:
            if driver.is_running:
                driver.kill()


def history_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("history-*.jsonl"))


def pids(drivers: Iterable[Driver]) -> list[int]:
    return [driver.pid for driver in drivers if driver.is_running]
