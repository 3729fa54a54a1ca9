"""A thousand connections per second with hostile bytes, also while a leader is killed: honest clients wait at
most twice as long, the memory of the brokers is bounded, and nothing is lost."""

import contextlib
import random
import threading
import time
from collections.abc import Iterator

import pytest
from tests.bench.usage import resident_bytes
from tests.jepsen.conftest import Run
from tests.jepsen.faults import All, HostileClients, Killed, Leader
from tests.jepsen.plans import Load
from tests.jepsen.stage import Stage
from tests.jepsen.told import send_seconds

pytestmark = pytest.mark.faults

CONNECTIONS_PER_SECOND = 1000
LOAD = Load(crash_share=0, transactional_writers=1, classic_groups=1, modern_groups=0, readers=1)
# A busy machine cannot open so many. But most of them must come, or nothing was tested.
RATE_SHARE_MIN = 0.5
TURNS, TURN_SECONDS = 3, 3.0
SLOWER_MAX = 2.0
MEMORY_MORE_MAX = 64 << 20
SAMPLE_SECONDS = 0.2


class PeakMemory:
    """The most resident memory of each broker since the start."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._stopping = threading.Event()
        self.before = self._sizes()
        self.most = dict(self.before)

    def _sizes(self) -> dict[int, int]:
        sizes = {}
        for broker_id, broker in self._stage.system.brokers.items():
            # One that is killed at this moment has none.
            with contextlib.suppress(ProcessLookupError):
                if broker.is_running:
                    sizes[broker_id] = resident_bytes(broker.pid)
        return sizes

    def watch(self) -> None:
        while not self._stopping.wait(SAMPLE_SECONDS):
            for broker_id, size in self._sizes().items():
                self.most[broker_id] = max(self.most.get(broker_id, 0), size)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self.watch, daemon=True)
        thread.start()
        yield
        self._stopping.set()
        thread.join()


def measured(stage: Stage, seconds: float) -> list[float]:
    """How long each send took in the next seconds."""
    begin = time.monotonic()
    stage.run(seconds)
    return send_seconds(stage, begin)


def p99(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.99)]


def test_hostile_clients_while_a_leader_is_killed(run: Run) -> None:
    with run(LOAD) as stage:
        stage.run(1.0)
        quiet: list[float] = []
        disturbed: list[float] = []
        hostile = HostileClients(stage.system, All(), CONNECTIONS_PER_SECOND, seed=stage.seed)
        memory = PeakMemory(stage)
        hostile_seconds = 0.0
        with memory.watching():
            # By turns, so that a machine that becomes busier does not concern only one of them.
            for _ in range(TURNS):
                quiet += measured(stage, TURN_SECONDS)
                with hostile:
                    disturbed += measured(stage, TURN_SECONDS)
                hostile_seconds += TURN_SECONDS
            begin = time.monotonic()
            with stage.fault(hostile):
                number = random.Random(stage.seed).randrange(stage.events.partitions)
                with stage.fault(Killed(stage.system, Leader(stage.topic, number))):
                    stage.wait_until_writable("writable after the kill")
                    stage.wait_for_progress()
                stage.run(1.0)
            hostile_seconds += time.monotonic() - begin
        more = {id_: most - memory.before[id_] for id_, most in memory.most.items()}
        figures = stage.report.figures
        figures["p99 ms"], figures["p99 ms with hostile clients"] = p99(quiet) * 1000, p99(disturbed) * 1000
        figures["hostile connections per second"] = hostile.connections / hostile_seconds
        figures["MB more at the most"] = max(more.values()) / 1e6
        assert hostile.connections >= RATE_SHARE_MIN * CONNECTIONS_PER_SECOND * hostile_seconds, figures
        assert max(more.values()) <= MEMORY_MORE_MAX, more
        assert p99(disturbed) <= SLOWER_MAX * p99(quiet), figures
