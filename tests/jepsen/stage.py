"""One run: a load on a cluster, faults, and the judgement of what the clients were told and what is left.

    with Stage(system, "leader killed", seed=7) as stage:
        with stage.fault(Killed(system, Leader(stage.topic))):
            stage.wait_until_writable()

The load runs when the block begins. At its end the stage waits until the cluster has recovered and every
process goes on, stops the load, reads everything, and checks the history and the end state. If anything is
wrong, it raises an AssertionError and keeps the history, the outputs of the brokers and the report in
build/jepsen/<test>-<seed>/."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol, Self

from tests.jepsen import end_state, faults
from tests.jepsen.checker import Rules, check
from tests.jepsen.end_state import Allowance, Expected, Usage
from tests.jepsen.faults import Fault
from tests.jepsen.faults.base import Process
from tests.jepsen.history import History, Recorder, merge
from tests.jepsen.plans import Load, Topic
from tests.jepsen.probing import Probes
from tests.jepsen.results import OUTPUT, PEER, Report
from tests.jepsen.watcher import Watcher
from tests.jepsen.workload import Workload, WorkloadError, history_files

from barnabas.client.admin import NewTopic, OffsetSpec
from barnabas.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition

# "Recovered" means: writable again after the session of a dead broker and so many seconds.
RECOVERY_SECONDS = 10.0
# How long to wait in order to see how long it takes.
PATIENCE_SECONDS = 60.0
LAST_READ_SECONDS_MAX = 40.0
SOCKETS_SECONDS_MAX = 10.0
POLL_SECONDS = 0.1


class Broker(Process, Protocol):
    def output(self) -> str: ...


class System(faults.System, Protocol):
    """The cluster under test."""

    @property
    def brokers(self) -> Mapping[int, Broker]: ...
    @property
    def bootstrap(self) -> str: ...
    @property
    def session_seconds(self) -> float:
        """After so long a dead broker is missed."""

    @property
    def zookeeper_connect(self) -> str | None:
        """None if the metadata is not ours to read."""

    @property
    def expected_lines(self) -> Sequence[Expected] | None:
        """Errors that brokers may print; None if the processes, what they print and use, are not judged."""

    def wait_until_in_sync(self, topic: str) -> None: ...


@dataclass(frozen=True)
class Timed:
    """A fault of a timeline: it begins so many seconds after the timeline, and lasts so long."""

    fault: Fault
    at: float
    lasting: float


RULES = Rules()


@dataclass(frozen=True)
class Settings:
    """What is different in a run from others."""

    partitions: int = 3
    topic_configs: Mapping[str, str] = field(default_factory=dict)
    rules: Rules = RULES
    # Errors that brokers print because of the fault of this test.
    expected_lines: Sequence[Expected] = ()
    allowance: Allowance = end_state.ALLOWANCE
    # If the fault damages what a check needs, such as the files of a broker: the check and the reason.
    without: Mapping[str, str] = field(default_factory=dict)


class Stage:
    def __init__(
        self,
        system: System,
        test: str,
        seed: int,
        load: Load | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.system = system
        self.seed = seed
        self.load = load or Load()
        self.settings = settings or Settings()
        self.report = Report(test, seed)
        # A new name in each run: rounds on the same cluster do not share anything.
        self.name = f"{test}-{seed}-{time.monotonic_ns() // 1_000_000:x}"
        self.events = Topic(f"{self.name}-events", self.settings.partitions)
        self.copies = Topic(f"{self.name}-copies", 2)
        # Several runs of the same test may go on at the same time. What is kept is moved.
        self.directory = OUTPUT / "running" / self.name
        self._kept = OUTPUT / (f"{test}-{seed}" if PEER == "barnabas" else f"{test}-{seed}-{PEER}")
        self.recovery_seconds_max = system.session_seconds + RECOVERY_SECONDS
        self._begun = self._changed = time.monotonic()
        self._is_measured = False
        # What else the history of this run must show; each returns what is wrong, as text.
        self.history_checks: list[Callable[[History], Iterable[str]]] = []
        # When the load has not begun, and when its connections are closed.
        self.usage_before: dict[int, Usage] = {}
        self.usage_after: dict[int, Usage] = {}
        self._bounces = 0
        self._undo = contextlib.ExitStack()

    @property
    def topic(self) -> str:
        """The topic that the processes write to."""
        return self.events.name

    @property
    def copying_group(self) -> str:
        return self.load.copying_group(self.name)

    @property
    def partitions(self) -> list[TopicPartition]:
        return self.events.all() + self.copies.all()

    # ---- begin and end

    def __enter__(self) -> Self:
        shutil.rmtree(self._kept, ignore_errors=True)
        self.directory.mkdir(parents=True)
        try:
            self._begin()
        except BaseException as error:
            self._keep(error)
            self._undo.close()
            raise
        return self

    def _begin(self) -> None:
        self._make_topics()
        self._outputs_before = {id_: len(broker.output()) for id_, broker in self.system.brokers.items()}
        self.usage_before = self._usage()
        recorder = self._undo.enter_context(Recorder(self.directory / "history-stage.jsonl"))
        self.probes = Probes(lambda: self.system.bootstrap, recorder)
        self.watcher = Watcher(self.system.brokers, (self.events.name, self.copies.name))
        self._undo.enter_context(self.watcher)
        self.workload = Workload(
            self.load,
            self.name,
            self.seed,
            self.system.bootstrap,
            (self.events, self.copies),
            self.directory,
        )
        self._undo.callback(self.workload.kill)
        self.workload.wait_for_progress()
        self._begun = self._changed = time.monotonic()

    def _make_topics(self) -> None:
        with self.system.admin() as admin:
            # Asking for a coordinator creates the internal topics, if they are not there yet.
            admin.fence_producers([f"{self.name}-first"])
            admin.list_consumer_group_offsets(f"{self.name}-first")
            admin.create_topics(
                [
                    NewTopic(each.name, each.partitions, 3, self._configs())
                    for each in (self.events, self.copies)
                ]
            )
        self.wait_until_in_sync()

    def _configs(self) -> dict[str, str]:
        return {"min.insync.replicas": "2", **self.settings.topic_configs}

    def _all_topics(self) -> list[str]:
        return [OFFSETS_TOPIC, TRANSACTIONS_TOPIC, self.events.name, self.copies.name]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._undo:
            if error is None:
                try:
                    self._finish()
                except BaseException as failure:
                    self._keep(failure)
                    raise
                if not self.report.is_good:
                    raise AssertionError(self._keep(None))
                self.show()
                self.report.append()
                self._remove_topics()
                shutil.rmtree(self.directory)
            else:
                self._keep(error)

    def show(self) -> None:
        """Print what a good run has shown."""
        print(self.report)

    def how_to_run_again(self) -> str:
        return f"SEED={self.seed} ROUNDS=1"

    def _remove_topics(self) -> None:
        """The next round has its own."""
        with self.system.admin() as admin:
            admin.delete_topics([self.events.name, self.copies.name])

    # ---- for the test

    @contextlib.contextmanager
    def fault(self, *faults: Fault) -> Iterator[None]:
        """Inject these in turn. At the end of the block they are healed in the opposite order, and
        the time until the cluster is writable is measured."""
        with contextlib.ExitStack() as healing:
            for fault in faults:
                healing.callback(self._heal, fault)
                self._inject(fault)
            yield
        self.wait_until_writable("writable after healing")

    def _inject(self, fault: Fault) -> None:
        began = time.monotonic()
        fault.inject()
        self._changed, self._is_measured = time.monotonic(), False
        self.note(repr(fault), began)

    def _heal(self, fault: Fault) -> None:
        fault.heal()
        self._changed, self._is_measured = time.monotonic(), False
        self.note(f"healed: {fault!r}")

    def note(self, what: str, when: float | None = None) -> None:
        """Something that happened, for the report."""
        seconds = (time.monotonic() if when is None else when) - self._begun
        self.report.faults.append(f"{seconds:.1f} s: {what}")

    def play(self, timeline: Sequence[Timed]) -> None:
        """Inject and heal faults at their times."""
        moments: list[tuple[float, Callable[[Fault], None], Fault]] = []
        for each in timeline:
            moments.append((each.at, self._inject, each.fault))
            moments.append((each.at + each.lasting, self._heal, each.fault))
        start = time.monotonic()
        with contextlib.ExitStack() as healing:
            for each in timeline:
                healing.callback(each.fault.heal)
            for at, act, fault in sorted(moments, key=lambda moment: moment[0]):
                self.run(max(0.0, start + at - time.monotonic()))
                act(fault)

    def run(self, seconds: float) -> None:
        """Let the load go on."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, POLL_SECONDS))
            self.workload.check()

    def wait_for_progress(self, operations: int = 3, kinds: Sequence[str] = ()) -> None:
        """Return when every process (of these kinds) has done so many more operations with success."""
        self.workload.wait_for_progress(operations, kinds)

    def bounce_clients(self) -> None:
        """Kill the clients of one driver (SIGKILL), the next time those of the next one; new ones take
        over."""
        place = self._bounces % len(self.workload.drivers)
        self._bounces += 1
        self.note(f"kill -9 of the clients of driver {place + 1}")
        self.workload.bounce(place)

    def wait_until_in_sync(self) -> None:
        """Return when all replicas of all topics are in sync."""
        for topic in self._all_topics():
            self.system.wait_until_in_sync(topic)

    def wait_until_writable(self, what: str = "writable") -> float:
        """The seconds from the last change, an injection or a healing, until each partition has acknowledged
        a new record. That it takes no longer than allowed is part of the judgement."""
        self.probes.write(self.partitions, PATIENCE_SECONDS)
        seconds = time.monotonic() - self._changed
        self._is_measured = True
        self.record_recovery(what, seconds, self.recovery_seconds_max)
        return seconds

    def record_recovery(self, what: str, seconds: float, seconds_max: float) -> None:
        name, number = what, 2
        while name in self.report.recovery:
            name, number = f"{what} ({number})", number + 1
        self.report.recovery[name] = seconds
        if seconds > seconds_max:
            self.problem(f"{name}: after {seconds:.1f} s, allowed are {seconds_max:.1f} s")

    def problem(self, text: str) -> None:
        """The run is not good; it goes on, though."""
        self.report.problems.append(text)

    # ---- the judgement

    def _finish(self) -> None:
        if not self._is_measured:
            self.wait_until_writable("writable after the last change")
        self.wait_until_in_sync()
        self.report.recovery["in sync after the last change"] = time.monotonic() - self._changed
        try:
            self.workload.wait_for_progress()
            self.workload.stop()
        except WorkloadError as error:
            self.problem(str(error))
            self.workload.kill()
        self._read_everything()
        self.watcher.stop()
        self._check_end_state()
        self._check_history(self.settings.rules)
        self.report.seconds = time.monotonic() - self._begun

    def _read_everything(self) -> None:
        """A last record in each partition shows how far to read: behind it there is nothing."""
        ends = self.probes.write(self.partitions, PATIENCE_SECONDS)
        for library in self.load.libraries:
            late = self.probes.read(library, ends, LAST_READ_SECONDS_MAX)
            for partition in late:
                self.problem(
                    f"{library} cannot read {partition} to its end, offset {ends[partition]}: a transaction "
                    f"hangs, or records are missing; {self._stable_offsets(partition)}"
                )
        groups = [group.id for group in self.load.groups(self.name)]
        if self.load.copiers:
            groups.append(self.copying_group)
        for group in groups:
            self.probes.committed(group, self.events.all())

    def _stable_offsets(self, partition: TopicPartition) -> str:
        with self.system.admin() as admin:
            spec = {partition: OffsetSpec.LATEST}
            stable = admin.list_offsets(spec, isolation_level="read_committed")[partition].offset
            high = admin.list_offsets(spec)[partition].offset
        return f"last stable offset {stable}, high watermark {high}"

    def _check_end_state(self) -> None:
        directories = {id_: broker.data_dir for id_, broker in self.system.brokers.items()}
        checks: dict[str, Callable[[], Iterator[str]]] = {
            "replicas": lambda: end_state.check_replicas(directories, self._high_watermarks()),
            "batches": lambda: end_state.check_batches(directories, self.watcher.partitions),
            "watched": lambda: iter(self.watcher.problems),
            "epochs": self._check_epochs,
            "outputs": self._check_outputs,
            "usage": self._check_usage,
        }
        unknown = set(self.settings.without) - set(checks)
        assert not unknown, f"there are no checks with these names: {unknown}"
        for name, run in checks.items():
            if name not in self.settings.without:
                for problem in run():
                    self.problem(f"{name}: {problem}")

    def _high_watermarks(self) -> dict[TopicPartition, int]:
        with self.system.admin() as admin:
            partitions = [
                TopicPartition(name, info.partition)
                for name, topic in admin.describe_topics(self._all_topics()).items()
                for info in topic.partitions
            ]
            found = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
        return {partition: listed.offset for partition, listed in found.items()}

    def _check_epochs(self) -> Iterator[str]:
        connect = self.system.zookeeper_connect
        if connect is not None:
            yield from end_state.check_epochs(end_state.read_leaderships(connect), self._all_topics())

    def _check_outputs(self) -> Iterator[str]:
        expected = self.system.expected_lines
        if expected is not None:
            outputs = {
                id_: broker.output()[self._outputs_before.get(id_, 0) :]
                for id_, broker in self.system.brokers.items()
            }
            yield from end_state.check_outputs(outputs, [*expected, *self.settings.expected_lines])

    def _check_usage(self) -> Iterator[str]:
        if self.system.expected_lines is not None:
            after = self._settled_usage()
            yield from end_state.check_usage(self.usage_before, after, self.settings.allowance)

    def _usage(self) -> dict[int, Usage]:
        return {
            id_: end_state.usage_of(broker.pid)
            for id_, broker in self.system.brokers.items()
            if broker.is_running
        }

    def _settled_usage(self) -> dict[int, Usage]:
        """The usage when connections of clients that are gone are closed, or that after some time."""
        deadline = time.monotonic() + SOCKETS_SECONDS_MAX
        while True:
            usage = self._usage()
            problems = end_state.check_usage(self.usage_before, usage, self.settings.allowance)
            if not list(problems) or time.monotonic() > deadline:
                break
            time.sleep(POLL_SECONDS)
        self.report.figures["resident MB before"] = _megabytes(self.usage_before)
        self.report.figures["resident MB after"] = _megabytes(usage)
        self.report.figures["sockets before"] = sum(each.sockets for each in self.usage_before.values())
        self.report.figures["sockets after"] = sum(each.sockets for each in usage.values())
        self.usage_after = usage
        return usage

    def _check_history(self, rules: Rules) -> None:
        if self.load.copiers:
            rules = _with_group(rules, self.copying_group)
        history = merge(history_files(self.directory))
        verdict = check(history, rules)
        self.report.judge(verdict)
        for own in self.history_checks:
            for problem in own(history):
                self.problem(problem)
        if not verdict.counts.operations:
            self.problem("the history is empty")

    # ---- what is kept

    def _keep(self, error: BaseException | None) -> str:
        """Keep what helps to understand the failure; returns the report."""
        if error is not None:
            self.problem(f"the run did not come to its end: {error!r}")
            with contextlib.suppress(Exception):
                self.workload.kill()
                self._check_history(Rules(read_to_end=False))
        for broker_id, broker in self.system.brokers.items():
            text = broker.output()
            (self.directory / f"broker-{broker_id}.log").write_text(text)
        shutil.rmtree(self._kept, ignore_errors=True)
        self.directory = self.directory.rename(self._kept)
        files = " ".join(str(path) for path in history_files(self.directory))
        copying = f" --exactly-once {self.copying_group}" if self.load.copiers else ""
        text = (
            f"{self.report}\n  kept in {self.directory}; check it again with\n"
            f"    python -m tests.jepsen.checker{copying} {files}\n"
            f"  run it again with {self.how_to_run_again()}"
        )
        (self.directory / "report.txt").write_text(text + "\n")
        self.report.append()
        print(text)
        return text


def _megabytes(usage: Mapping[int, Usage]) -> float:
    return sum(each.resident_bytes for each in usage.values()) / 1e6


def _with_group(rules: Rules, group: str) -> Rules:
    return replace(rules, exactly_once_groups=rules.exactly_once_groups | {group})
