"""A pipeline, the replay of its dead letters, mirror, backfill and audit on a cluster of three brokers that
loses one of them meanwhile: every record is in its place once."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.topics import Topics
from tests.spark.writing import committed_records, committed_values

from barnabas.spark.jobs.audit import TopicLog, audit
from barnabas.spark.jobs.backfill import Backfill, backfill
from barnabas.spark.jobs.mirror import Mirror, mirror_once
from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.maintaining import maintain_tables, tables_of
from barnabas.spark.pipeline.replaying import replay
from barnabas.spark.pipeline.running import run
from barnabas.spark.pipeline.status import status_of
from barnabas.spark.settings import Topics as Wanted
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from barnabas.testing import Broker, Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """\
name: cluster
bootstrap: {bootstrap}
checkpoint: ./state
dead_letters: dead
sources:
  events:
    topic: events
    decode: json
    schema: "id long, key string"
    bad_records: quarantine
    options: {{maxOffsetsPerTrigger: "500"}}
sinks:
  - {{from: events, topic: copies, key: id}}
  - {{from: events, table: {{path: ./tables/events}}}}
  - {{from: events, table: {{path: ./tables/newest, mode: upsert, key: [key], order_by: id}}}}
"""
EVENTS, KEYS, BAD = 2000, 7, 20
TOPICS = ("events", "copies", "dead", "mirrored", "filled")
# Libraries give warnings, and the garbage collector closes connections to SQLite.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def own(cluster: Cluster) -> Iterator[Topics]:
    with Topics(cluster.bootstrap) as own:
        for topic in TOPICS:
            own.make(topic)
        for partition in (0, 1):
            numbers = range(partition, EVENTS, 2)
            events = [json.dumps({"id": each, "key": f"{each % KEYS}"}).encode() for each in numbers]
            own.put("events", events, partition)
            own.put("events", [b"bad %d" % each for each in range(partition, BAD, 2)], partition)
        yield own


@contextmanager
def losing_a_leader(cluster: Cluster, topic: str, is_due: Callable[[], bool]) -> Iterator[None]:
    """Kill the leader of partition 0 as soon as `is_due`; afterwards, it is there again, and in sync."""
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.05):
            if is_due():
                killed.append(cluster.leader_of((topic, 0)))
                cluster.kill(killed[0])
                return

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert killed, "the work was done before a broker was killed"
    cluster.restart(*killed)
    for each in TOPICS:
        cluster.wait_until_in_sync(each)


def test_a_pipeline_and_its_dead_letters(
    spark: "SparkSession", cluster: Cluster, own: Topics, tmp_path: Path
) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE.format(bootstrap=cluster.bootstrap))
    pipeline = load(file)
    begun = tmp_path / "state"
    with losing_a_leader(cluster, "events", lambda: any(begun.glob("*/commits/0"))):
        done = run(spark, pipeline, tmp_path, once=True, watch=lambda progress: None)
    assert {each.state for each in done} == {"done"}
    everything = list(range(EVENTS))
    copies = committed_records(cluster.bootstrap, "copies")
    assert sorted(json.loads(record.value)["id"] for record in copies) == everything
    rows = store_of(TableTarget(str(tmp_path / "tables" / "events"))).read().to_pylist()
    assert sorted(row["id"] for row in rows) == everything
    newest = store_of(TableTarget(str(tmp_path / "tables" / "newest"))).read().to_pylist()
    assert sorted(row["id"] for row in newest) == everything[-KEYS:]
    dead = sorted(record.value for record in committed_records(cluster.bootstrap, "dead"))
    assert dead == sorted(b"bad %d" % number for number in range(BAD))
    # What the queries have committed for their groups is what they have read.
    assert {each.lag for each in status_of(pipeline, tmp_path).queries} == {0}
    assert all(report.problem is None for report in maintain_tables(tables_of(pipeline, tmp_path), 7))

    with losing_a_leader(cluster, "dead", lambda: True):
        assert replay(pipeline).sent == {"events": BAD}
    again = [record for record in committed_records(cluster.bootstrap, "events") if record.headers]
    assert sorted(record.value for record in again) == dead


def test_mirror_backfill_and_audit(
    spark: "SparkSession", cluster: Cluster, own: Topics, tmp_path: Path
) -> None:
    client = {"bootstrap.servers": cluster.bootstrap}
    own.numbers("mirrored", 0, EVENTS)
    checkpoint = tmp_path / "mirror"
    with Broker(subprocess=True) as target, Topics(target.bootstrap) as copies:
        mirror = Mirror(
            client,
            {"bootstrap.servers": target.bootstrap},
            Wanted(("mirrored",)),
            str(checkpoint),
            reading={"maxOffsetsPerTrigger": "300"},
        )
        with losing_a_leader(cluster, "mirrored", lambda: any(checkpoint.glob("commits/0"))):
            mirror_once(spark, mirror)
        assert committed_values(copies, "mirrored") == list(range(EVENTS))

    rows = spark.range(0, EVENTS, 1, 4).selectExpr("CAST(id AS STRING) AS value")
    job = Backfill(client, "filled", "first", value="text:value")
    with losing_a_leader(cluster, "filled", lambda: True):
        assert backfill(rows, job) == (EVENTS, False)
    assert backfill(rows, job) == (0, True)
    assert committed_values(own, "filled") == list(range(EVENTS))

    with losing_a_leader(cluster, "filled", lambda: True):
        report = audit(spark, TopicLog(client, Wanted(("filled", "mirrored"))))
    assert report.faults == 0
    assert sum(each.records for each in report.partitions) == 2 * EVENTS
