"""A pipeline into tables of all formats and a topic, of which the driver, workers and the broker are killed
(SIGKILL) at random moments. In the end every event is in every place once, and the newest of each key in the
table that is upserted."""

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.clients.broker_process import PROGRAM
from tests.spark.killing import Driver
from tests.spark.topics import Topics
from tests.spark.writing import committed_records

from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker

SOURCE, COPY = "events", "copies"
KEYS = 17
BATCH_ROWS = 100
WAIT_SECONDS = 300.0
# Spark's Python processes may be too slow on a busy machine; the command then ends with that error.
LAST_RUNS_MAX = 4
PIPELINE = """\
name: killed
bootstrap: {bootstrap}
checkpoint: ./state
trigger: 500ms
sources:
  events:
    topic: events
    decode: json
    schema: "id long, key string"
    options: {{maxOffsetsPerTrigger: "{batch_rows}"}}
sinks:
  - {{from: events, table: {{path: ./tables/delta, format: delta}}}}
  - {{from: events, table: {{path: ./tables/iceberg, format: iceberg}}}}
  - {{from: events, table: {{path: ./tables/parquet, format: parquet}}}}
  - from: events
    table: {{path: ./tables/newest, format: {upserted}, mode: upsert, key: [key], order_by: id}}
  - {{from: events, topic: copies, key: id}}
"""
# Libraries give warnings, and the garbage collector closes connections to SQLite.
pytestmark = pytest.mark.filterwarnings("ignore")


class Stage:
    """A broker, a topic that grows, and the driver of the pipeline that reads it."""

    def __init__(self, broker: Broker, folder: Path, upserted: str) -> None:
        self._broker = broker
        self._folder = folder
        self._upserted = upserted
        self._topics = Topics(broker.bootstrap)
        for name in (SOURCE, COPY):
            self._topics.make(name)
        file = folder / "pipeline.yaml"
        text = PIPELINE.format(bootstrap=broker.bootstrap, batch_rows=BATCH_ROWS, upserted=upserted)
        file.write_text(text)
        # A task is tried four times.
        self._command = [PROGRAM, "pipeline", "run", file, "--master", "local[2,4]"]
        self.driver = Driver(self._command, folder)
        self.fed = 0
        self.newest: dict[str, int] = {}

    def close(self) -> None:
        self.driver.close()
        self._topics.close()

    def kill_broker(self) -> None:
        self._broker.kill()
        self._broker.restart()

    def feed(self, batches: int) -> None:
        """The events of a key are in one partition, so that their order is known."""
        half = batches * BATCH_ROWS // 2
        for partition in (0, 1):
            numbers = range(self.fed, self.fed + half)
            events = [{"id": number, "key": f"{partition}-{number % KEYS}"} for number in numbers]
            self._topics.put(SOURCE, [json.dumps(event).encode() for event in events], partition)
            self.newest |= {str(event["key"]): int(str(event["id"])) for event in events}
            self.fed += half

    def begun(self) -> int:
        """Batches of the pipeline."""
        return len(list((self._folder / "state").glob("*/offsets/[0-9]*")))

    def wait_until(self, message: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not holds():
            self.driver.ensure()
            if time.monotonic() > deadline:
                raise AssertionError(f"{message}: not within {WAIT_SECONDS} s\n{self._output()}")
            time.sleep(0.05)

    def finish(self) -> None:
        """Let the pipeline process everything that is left, and end."""
        for _ in range(LAST_RUNS_MAX):
            if self.driver.start([*self._command, "--once"]).wait(WAIT_SECONDS) == 0:
                return
        raise AssertionError(f"the pipeline does not end:\n{self._output()}")

    def _output(self) -> str:
        return self.driver.log.read_text(errors="replace")[-6000:]

    # ---- judging

    def _rows(self, name: str, form: str) -> list[dict[str, int]]:
        target = TableTarget(str(self._folder / "tables" / name), format=form)
        rows: list[dict[str, int]] = store_of(target).read().to_pylist()
        return rows

    def judge(self) -> None:
        everything = list(range(self.fed))
        for form in ("delta", "iceberg", "parquet"):
            assert sorted(row["id"] for row in self._rows(form, form)) == everything, form
        newest = [(str(row["key"]), row["id"]) for row in self._rows("newest", self._upserted)]
        assert sorted(newest) == sorted(self.newest.items())
        copies = committed_records(self._broker.bootstrap, COPY)
        assert sorted(json.loads(record.value)["id"] for record in copies) == everything


@pytest.fixture(params=["delta", "iceberg"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    with Broker(subprocess=True) as broker:
        stage = Stage(broker, tmp_path, request.param)
        yield stage
        stage.close()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_event_is_in_every_place_once_whatever_is_killed(stage: Stage) -> None:
    kills: dict[str, Callable[[], None]] = {
        "driver": stage.driver.kill,
        "driver only": stage.driver.kill_alone,
        "worker": stage.driver.kill_worker,
        "broker": stage.kill_broker,
    }
    kinds = list(kills) * 2
    random.shuffle(kinds)
    for number, kind in enumerate(kinds):
        begun, batches = stage.begun(), random.randint(1, 3)
        stage.feed(batches)
        # All sinks share a query. A kill may come while it starts, in a batch, or nearly at its end.
        awaited = begun + random.randint(1, batches)
        stage.wait_until(f"batches to kill the {kind} in", lambda count=awaited: stage.begun() >= count)
        pause_seconds = random.uniform(0.0, 2.0)
        time.sleep(pause_seconds)
        print(
            f"{number}: {kind} killed after {pause_seconds:.3f} s: {stage.fed} events, {stage.begun()} begun"
        )
        kills[kind]()
    stage.feed(1)
    stage.driver.kill()
    stage.finish()
    stage.judge()
