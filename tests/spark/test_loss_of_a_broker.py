"""The source and the exactly-once sink go on when a broker of the cluster that they read and write dies."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.spark.topics import Topics
from tests.spark.writing import committed_values

from barnabas.testing import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT_SECONDS_MAX = 180.0


def test_a_query_copies_every_record_once_while_a_broker_dies(
    spark: "SparkSession", checkpoint: Callable[[str], str]
) -> None:
    with Cluster(brokers=3) as cluster, Topics(cluster.bootstrap) as topics:
        source, target = topics.make("source"), topics.make("target")
        servers = {"kafka.bootstrap.servers": cluster.bootstrap}
        reader = spark.readStream.format("barnabas").options(
            **servers,
            subscribe=source,
            startingOffsets="earliest",
            columns="value",
            maxOffsetsPerTrigger="500",
        )
        exactly_once = {"topic": target, "delivery": "exactly-once", "transactional.id": "copy"}
        writer = reader.load().writeStream.format("barnabas").options(**servers, **exactly_once)
        query = writer.option("checkpointLocation", checkpoint("copy")).start()
        try:
            topics.numbers(source, 0, 300)
            wait_for(lambda: len(committed_values(topics, target)) > 0, query)
            cluster.kill(cluster.leader_of((source, 0)))
            topics.numbers(source, 300, 600, partition=1)
            topics.numbers(source, 600, 900, partition=0)
            wait_for(lambda: len(committed_values(topics, target)) >= 900, query)
        finally:
            query.stop()
        assert committed_values(topics, target) == list(range(900))


def wait_for(condition: Callable[[], bool], query: object) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert query.exception() is None, query.exception()  # type: ignore[attr-defined]
        assert time.monotonic() < deadline, "the query does not go on"
        time.sleep(0.2)
