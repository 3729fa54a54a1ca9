"""Real drivers, tasks and brokers are killed (SIGKILL) at random moments while a query copies a topic,
exactly once. The test reads the copy with read_committed: every number is there once."""

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from tests.spark.killing import Driver
from tests.spark.topics import Topics
from tests.spark.writing import committed_values

from barnabas.testing import Broker

JOB = Path(__file__).with_name("sink_job.py")
BATCH_ROWS = 100
# How tasks pass their rows: in messages, in files, or in both, since this is half of a batch.
IN_MESSAGES, IN_FILES, EITHER = 1 << 20, 1, BATCH_ROWS * 5
WAIT_SECONDS = 300
SOURCE, TARGET = "numbers", "copy"
# A query that fails because of a kill is started again; after so many failures there is another reason.
STARTS_BEYOND_KILLS_MAX = 5


class Stage:
    """A broker, a topic that grows, and the driver of a query that copies it."""

    def __init__(self, broker: Broker, folder: Path, staging_bytes: int) -> None:
        self.broker = broker
        self.fed = 0
        self.has_staged = False
        self._topics = Topics(broker.bootstrap)
        for name in (SOURCE, TARGET):
            self._topics.make(name)
        self._folder = folder
        command = [sys.executable, JOB, broker.bootstrap, SOURCE, TARGET, folder]
        self.driver = Driver([*command, str(BATCH_ROWS), str(staging_bytes)], folder)

    def close(self) -> None:
        self.driver.close()
        self._topics.close()

    # ---- the query

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

    def wait_until(self, message: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not holds():
            self.driver.ensure()
            self.has_staged |= any((self._folder / "checkpoint.staging").rglob("*.records"))
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{message} not within {WAIT_SECONDS} s:\n{self.driver.log.read_text()[-6000:]}"
                )
            time.sleep(0.05)

    def kill_broker(self) -> None:
        self.broker.kill()
        self.broker.restart()


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    with Broker(subprocess=True) as broker:
        stage = Stage(broker, tmp_path, request.param)
        yield stage
        stage.close()


def survive(stage: Stage, kinds: Sequence[str]) -> None:
    kills: dict[str, Callable[[], None]] = {
        "driver": stage.driver.kill,
        "driver only": stage.driver.kill_alone,
        "worker": stage.driver.kill_worker,
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
    stage.driver.kill()
    assert stage.seen() == list(range(stage.fed))
    assert stage.driver.starts <= len(kinds) + STARTS_BEYOND_KILLS_MAX, (
        "the query fails where nothing was killed"
    )


@pytest.mark.timeout(900)
@pytest.mark.parametrize("stage", [EITHER], indirect=True)
def test_every_row_is_there_once_whatever_is_killed(stage: Stage) -> None:
    kinds = [random.choice(("driver", "driver only")), "worker", "worker", "broker"]
    random.shuffle(kinds)
    survive(stage, kinds)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "stage, rounds, stages", [(IN_MESSAGES, 5, False), (IN_FILES, 4, True)], indirect=["stage"]
)
def test_every_row_is_there_once_after_many_kills(stage: Stage, rounds: int, stages: bool) -> None:
    kinds = ["driver", "worker", "broker", "driver only"] * rounds
    random.shuffle(kinds)
    survive(stage, kinds)
    assert stage.has_staged == stages
