"""Real drivers, tasks and brokers are killed (SIGKILL) at random moments while a query copies a topic,
exactly once. The judge reads the copy with read_committed: every number is there, once."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from tests.spark.processes import kill, session_of
from tests.spark.topics import Topics
from tests.spark.writing import committed_values

from barnabas.testing import Broker

JOB = Path(__file__).with_name("sink_job.py")
BATCH_ROWS = 100
# How tasks hand their rows over: in messages, in files, or as it comes, for this is half of a batch.
IN_MESSAGES, IN_FILES, EITHER = 1 << 20, 1, BATCH_ROWS * 5
WAIT_SECONDS = 300
SOURCE, TARGET = "numbers", "copy"
# A query that fails because of a kill is started again; so often it fails for another reason.
STARTS_BEYOND_KILLS_MAX = 5


class Stage:
    """A broker, a topic that grows, and the driver of a query that copies it."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.fed = 0
        self.starts = 0
        self._topics = Topics(broker.bootstrap)
        for name in (SOURCE, TARGET):
            self._topics.make(name)
        self._folder = folder
        self._log = folder / "driver.log"
        self._sessions: list[int] = []
        self.staging_bytes = EITHER
        self.has_staged = False
        self._driver: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        for leader in self._sessions:
            for process in session_of(leader):
                kill(process)
        if self._driver is not None:
            self._driver.wait()
        self._topics.close()

    # ---- the query

    def ensure_driver(self) -> None:
        if self._driver is not None and self._driver.poll() is None:
            return
        self.starts += 1
        command = [sys.executable, JOB, self.broker.bootstrap, SOURCE, TARGET, self._folder]
        command += [str(BATCH_ROWS), str(self.staging_bytes)]
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        with self._log.open("ab") as log:
            self._driver = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, cwd=self._folder, start_new_session=True
            )
        self._sessions.append(self._driver.pid)

    def feed(self, batches: int) -> None:
        half = batches * BATCH_ROWS // 2
        for partition in (0, 1):
            self._topics.numbers(SOURCE, self.fed, self.fed + half, partition)
            self.fed += half

    def batches_begun(self) -> int:
        folder = self._folder / "checkpoint" / "offsets"
        return 1 + max((int(path.name) for path in folder.glob("[0-9]*")), default=-1)

    def has_begun(self, batches: int) -> bool:
        return self.batches_begun() >= batches

    def seen(self) -> list[int]:
        return committed_values(self._topics, TARGET)

    def wait_until(self, told: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not holds():
            self.ensure_driver()
            self.has_staged |= any((self._folder / "checkpoint.staging").rglob("*.records"))
            if time.monotonic() > deadline:
                raise AssertionError(f"{told} not within {WAIT_SECONDS} s:\n{self._log.read_text()[-6000:]}")
            time.sleep(0.05)

    # ---- killing

    def kill_driver(self) -> None:
        """The driver and all of its processes at once."""
        assert self._driver is not None
        for process in session_of(self._driver.pid):
            kill(process)
        self._driver.wait()

    def kill_driver_only(self) -> None:
        """Its Python workers learn of it later, and may still be at work when the next driver is."""
        assert self._driver is not None
        for process, command in session_of(self._driver.pid).items():
            if "pyspark.daemon" not in command:
                kill(process)
        self._driver.wait()

    def kill_worker(self) -> None:
        """Whatever it does: reads, encodes, or commits."""
        assert self._driver is not None
        workers = [
            process
            for process, command in session_of(self._driver.pid).items()
            if "pyspark.daemon" in command
        ]
        if workers:
            kill(random.choice(workers))

    def kill_broker(self) -> None:
        self.broker.kill()
        self.broker.restart()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Broker(subprocess=True) as broker:
        stage = Stage(broker, tmp_path)
        yield stage
        stage.close()


def survive(stage: Stage, kinds: Sequence[str]) -> None:
    kills: dict[str, Callable[[], None]] = {
        "driver": stage.kill_driver,
        "driver only": stage.kill_driver_only,
        "worker": stage.kill_worker,
        "broker": stage.kill_broker,
    }
    for kind in kinds:
        begun = stage.batches_begun()
        stage.feed(random.randint(1, 3))
        stage.wait_until(f"the batch in which to kill the {kind} is", partial(stage.has_begun, begun + 1))
        time.sleep(random.uniform(0.0, 0.8))
        kills[kind]()
    stage.feed(1)
    stage.wait_until("all rows were seen", lambda: len(stage.seen()) >= stage.fed)
    stage.kill_driver()
    assert stage.seen() == list(range(stage.fed))
    assert stage.starts <= len(kinds) + STARTS_BEYOND_KILLS_MAX, "the query fails where nothing was killed"


@pytest.mark.timeout(900)
def test_every_row_is_there_once_whatever_is_killed(stage: Stage) -> None:
    kinds = [random.choice(("driver", "driver only")), "worker", "worker", "broker"]
    random.shuffle(kinds)
    survive(stage, kinds)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("staging_bytes", [IN_MESSAGES, IN_FILES])
def test_every_row_is_there_once_whatever_is_killed_how_often(stage: Stage, staging_bytes: int) -> None:
    stage.staging_bytes = staging_bytes
    kinds = ["driver", "worker", "broker", "driver only"] * (5 if staging_bytes == IN_MESSAGES else 4)
    random.shuffle(kinds)
    survive(stage, kinds)
    assert stage.has_staged == (staging_bytes == IN_FILES)
