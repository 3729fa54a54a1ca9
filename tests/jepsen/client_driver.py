"""Runs the processes of one DriverPlan, which is the first line of its input, until the input ends or says
"stop".

    python -m tests.jepsen.client_driver

It prints how many operations of each process have succeeded, ten times a second, and an exception that no
client may raise. A process of its own for the clients: they can be killed, and they do not slow down the
network of the cluster, which is a thread of the test."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
import traceback
from pathlib import Path

from tests.jepsen.client_processes import Process, Surroundings, processes_of
from tests.jepsen.history import Recorder
from tests.jepsen.plans import DriverPlan

REPORT_SECONDS = 0.1
STOP_SECONDS_MAX = 90.0


class Driver:
    def __init__(self, plan: DriverPlan, recorder: Recorder) -> None:
        self._surroundings = Surroundings(plan, recorder, threading.Event())
        self._threads = [
            threading.Thread(target=self._run, args=(process,), name=process.client_id, daemon=True)
            for process in processes_of(self._surroundings)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        threading.Thread(target=self._report, daemon=True).start()

    def _run(self, process: Process) -> None:
        try:
            process.run()
        except BaseException:
            say({"failure": f"{process.client_id} ({process.plan.library}): {traceback.format_exc()}"})

    def _report(self) -> None:
        while not self._surroundings.stopping.wait(REPORT_SECONDS):
            say({"done": dict(self._surroundings.done)})

    def stop(self) -> None:
        self._surroundings.stopping.set()
        for thread in self._threads:
            thread.join(STOP_SECONDS_MAX)
            if thread.is_alive():
                say({"failure": f"{thread.name} does not end: {_stack(thread)}"})


def _stack(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame)) if frame else "no stack"


def say(message: dict[str, object]) -> None:
    # One write, so that lines of several threads do not mix.
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    # Shows what each client is waiting for.
    faulthandler.register(signal.SIGUSR1)
    plan = DriverPlan.from_json(sys.stdin.readline())
    with Recorder(Path(plan.history)) as recorder:
        driver = Driver(plan, recorder)
        driver.start()
        order = sys.stdin.readline()
        if not order:
            # The process that started this one is gone.
            os._exit(1)
        driver.stop()
    say({"ended": True})


if __name__ == "__main__":
    main()
