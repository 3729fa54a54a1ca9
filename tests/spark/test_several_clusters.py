"""A pipeline whose source and sink are on another cluster than its dead letters."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.spark.test_pipeline import quiet
from tests.spark.topics import Topics
from tests.spark.writing import committed_records

from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.replaying import replay
from barnabas.spark.pipeline.running import run
from barnabas.spark.pipeline.status import status_of
from barnabas.testing import Broker

PIPELINE = """\
name: {topic}
bootstrap: {here}
checkpoint: ./state
dead_letters: {topic}-dead
clusters:
  west: {{bootstrap: "{west}"}}
sources:
  near: {{topic: {topic}, decode: json, schema: "id long"}}
  far: {{topic: orders, cluster: west, decode: json, schema: "id long", bad_records: quarantine}}
sinks:
  - {{from: near, topic: copies, cluster: west, key: id}}
  - {{from: far, topic: {topic}-out, key: id}}
"""


def ids(bootstrap: str, topic: str) -> list[int]:
    return sorted(json.loads(record.value)["id"] for record in committed_records(bootstrap, topic))


def test_rows_go_from_one_cluster_to_the_other(
    spark: SparkSession, broker: Broker, topics: Any, topic: str, tmp_path: Path
) -> None:
    for name in ("out", "dead"):
        topics.make(f"{topic}-{name}")
    with Broker(subprocess=True) as west, Topics(west.bootstrap) as there:
        # With one partition, it is certain where the record is that is sent again.
        there.make("orders", partitions=1)
        there.make("copies")
        there.put("orders", [b'{"id": 1}', b"bad", b'{"id": 2}'])
        topics.put(topic, [b'{"id": 3}', b'{"id": 4}'])
        path = tmp_path / "pipeline.yaml"
        path.write_text(PIPELINE.format(topic=topic, here=broker.bootstrap, west=west.bootstrap))
        pipeline = load(path)
        run(spark, pipeline, tmp_path, once=True, watch=quiet)
        assert ids(west.bootstrap, "copies") == [3, 4]
        assert ids(broker.bootstrap, f"{topic}-out") == [1, 2]
        (letter,) = committed_records(broker.bootstrap, f"{topic}-dead")
        assert letter.value == b"bad"
        status = status_of(pipeline, tmp_path)
        assert ({each.lag for each in status.queries}, status.dead_letters) == ({0}, 1)
        assert replay(pipeline).sent == {"orders": 1}
        values = [each.value for each in there.records("orders")]
        assert values == [b'{"id": 1}', b"bad", b'{"id": 2}', b"bad"]
