"""Random faults for hours, on one cluster with a load: `make soak HOURS=8 SEED=1`.

The run is a row of portions of some minutes, so that what has to be checked at once stays small. Each portion
is a Stage with topics of its own; it has windows with faults, up to three at a time, or none in a quarter of
the windows. After the first quarter of each hour no broker is ended, so that processes live long enough to
show whether they leak memory.

The seed alone decides which faults come. FROM=41 begins with window 41, to run a portion again."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from types import FrameType

from rich.console import Console
from tests.jepsen import end_state
from tests.jepsen.end_state import Expected, Usage
from tests.jepsen.faults import RandomFaults, Scope, Window
from tests.jepsen.plans import Load
from tests.jepsen.results import PEER, append_function
from tests.jepsen.soak_figures import TEST, Figures
from tests.jepsen.stage import Settings, Stage, System
from tests.jepsen.summary import WIDTH
from tests.jepsen.systems import OurSystem, SharedSystem

PORTION_SECONDS = 120.0
# In this part of each hour, brokers may be killed and stopped.
ENDING_SHARE = 0.25
STEP_SECONDS = 0.5
PROBLEM_CHARACTERS_MAX = 400
LOAD = Load(copiers=1)
SETTINGS = Settings(expected_lines=[Expected(r"No space left on device", "a fault fills the disk")])
# The seed of a portion is made of the seed of the run and the number of its first window.
WINDOWS_MAX = 100_000


class Portion(Stage):
    """The windows of some minutes, on topics of their own."""

    def __init__(self, system: System, seed: int, first_window: int) -> None:
        super().__init__(system, "soak_portion", seed * WINDOWS_MAX + first_window, LOAD, SETTINGS)
        self._again = f"make soak SEED={seed} FROM={first_window}"

    def show(self) -> None:
        """What is there to know was printed for each window."""

    def how_to_run_again(self) -> str:
        return self._again

    def scope(self, ends_processes: bool) -> Scope:
        plans = self.load.processes(self.name)
        return Scope(
            list(self.system.brokers),
            self.topic,
            self.events.partitions,
            [group.id for group in self.load.groups(self.name)],
            # One is enough: coordinators are not to be hit more often than leaders.
            [plan.transactional_id for plan in plans if plan.transactional_id][-1:],
            ends_processes=ends_processes,
        )


class Windows:
    """The windows of the run in their order, in portions."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._rotation: RandomFaults | None = None
        self.number = 1  # of the next window
        self.seconds = 0.0  # of all windows so far

    @property
    def ends_processes(self) -> bool:
        return self.seconds % 3600 < 3600 * ENDING_SHARE

    def take(self, portion: Portion) -> list[Window]:
        """Those of the next portion."""
        scope = portion.scope(self.ends_processes)
        if self._rotation is None:
            self._rotation = RandomFaults(portion.system, scope, self._seed)
        self._rotation.move_to(portion.system, scope)
        taken: list[Window] = []
        for window in self._rotation.windows():
            taken.append(window)
            self.number += 1
            self.seconds += window.seconds
            if sum(each.seconds for each in taken) >= PORTION_SECONDS:
                break
        return taken


class Soak:
    def __init__(self, hours: float, seed: int) -> None:
        self.figures = Figures()
        self._seed = seed
        self._shared = SharedSystem({})
        self._windows = Windows(seed)
        self._begun = time.monotonic()
        self._end = self._begun + hours * 3600
        self._is_stopping = False

    def stop(self) -> None:
        """Come to an end: heal, check, and sum up."""
        self._is_stopping = True

    @property
    def _is_over(self) -> bool:
        return self._is_stopping or time.monotonic() >= self._end

    @property
    def _hours(self) -> float:
        return (time.monotonic() - self._begun) / 3600

    def run(self, first_window: int = 1) -> None:
        try:
            while self._windows.number < first_window:
                self._windows.take(self._new_portion())
            while not self._is_over:
                self._run_portion()
            if self._shared.is_running:
                self._stop_brokers()
        finally:
            self._shared.discard()
            self.figures.hours = self._hours
            self.figures.judge()

    def _new_portion(self) -> Portion:
        system = self._shared.get()
        assert isinstance(system, OurSystem)
        return Portion(system, self._seed, self._windows.number)

    def _run_portion(self) -> None:
        portion = self._new_portion()
        first = self._windows.number
        try:
            with portion:
                for place, window in enumerate(self._windows.take(portion)):
                    if self._is_over:
                        break
                    self._run_window(portion, window, first + place)
        except Exception as error:
            # The portion has printed and kept everything.
            problems = portion.report.problems or [repr(error)]
            self.figures.problems += [
                f"portion from window {first}: {problem[:PROBLEM_CHARACTERS_MAX]}" for problem in problems
            ]
            # The next portion has a new cluster, whose descriptors and processes are others.
            self._shared.discard()
            self.figures.quiet.clear()
        else:
            self.figures.quiet += [portion.usage_before, portion.usage_after]
        finally:
            self.figures.add_portion(portion.report)

    def _run_window(self, portion: Portion, window: Window, number: int) -> None:
        self.figures.add_window(window)
        with portion.fault(*window.faults) if window.faults else contextlib.nullcontext():
            end = min(time.monotonic() + window.seconds, self._end)
            while (left := end - time.monotonic()) > 0 and not self._is_stopping:
                portion.run(min(left, STEP_SECONDS))
        usage = self._usage()
        self.figures.add_usage(self._hours, usage)
        operations = self.figures.counts.operations + sum(portion.workload.done.values())
        print(_line(self._hours, number, operations, usage), end=": ")
        print(str(window).replace(portion.topic, "events").replace(portion.name, "soak"), flush=True)

    def _usage(self) -> dict[int, Usage]:
        brokers = self._shared.get().brokers
        return {id_: end_state.usage_of(each.pid) for id_, each in brokers.items() if each.is_running}

    def _stop_brokers(self) -> None:
        for broker_id, broker in self._shared.get().brokers.items():
            began = time.monotonic()
            code = broker.stop()
            self.figures.stop_seconds[broker_id] = time.monotonic() - began
            if code:
                self.figures.problems.append(f"the clean stop of broker {broker_id} ended with {code}")


def _line(hours: float, number: int, operations: int, usage: Mapping[int, Usage]) -> str:
    minutes, seconds = divmod(int(hours * 3600), 60)
    memory = "/".join(f"{each.resident_bytes / 1e6:.0f}" for each in usage.values())
    descriptors = "/".join(str(each.sockets + each.files) for each in usage.values())
    elapsed = f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return f"{elapsed} window {number}, {operations} operations, {memory} MB, {descriptors} descriptors"


@contextlib.contextmanager
def ended_by_signals(soak: Soak) -> Iterator[None]:
    """The first Ctrl-C ends the run in good order, the second one at once."""

    def handle(number: int, frame: FrameType | None) -> None:
        print("ending; once more ends at once", flush=True)
        soak.stop()
        signal.signal(number, former[signal.Signals(number)])

    former = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.jepsen.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=8.0, help="how long; 0.1 are six minutes")
    parser.add_argument("--seed", type=int, help="decides which faults come; by default any")
    parser.add_argument("--from-window", type=int, default=1, metavar="NUMBER", help="skip those before")
    options = parser.parse_args(arguments)
    if PEER != "barnabas":
        parser.error("a long run needs faults of disks and clocks, which only our own cluster has")
    seed = secrets.randbelow(10_000) if options.seed is None else options.seed
    print(f"seed {seed}, {options.hours:g} hours; Ctrl-C ends it early", flush=True)
    soak = Soak(options.hours, seed)
    try:
        with ended_by_signals(soak):
            soak.run(options.from_window)
    finally:
        soak.figures.print(Console(width=WIDTH))
        report = soak.figures.report(seed)
        report.append()
        append_function(TEST, "soak", seed, report.is_good)
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
