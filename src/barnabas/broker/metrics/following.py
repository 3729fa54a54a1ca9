"""Partitions that this broker follows: how far they are behind their leaders, and what fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import Collected, counter, gauge, gauges, labels

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def collect(broker: Broker) -> Collected:
    following = broker.following
    manager = labels(clientid="Replica")
    prefix = "kafka_server_replicafetchermanager_"
    yield gauges(
        prefix + "maxlag",
        "Records that the slowest followed partition is behind its leader",
        [(manager, following.lag_max)],
    )
    yield gauges(
        prefix + "failedpartitionscount",
        "Followed partitions whose last fetch failed",
        [(manager, following.failed_partitions)],
    )
    yield gauge(
        "barnabas_replica_fetchers_failing",
        "Fetchers whose leader does not answer",
        following.failing_fetchers,
    )
    yield counter(
        "kafka_server_brokertopicmetrics_replicationbytesin",
        "Bytes of records fetched from leaders",
        following.bytes_fetched,
    )
    yield gauges(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "Records that a followed partition is behind the high watermark of its leader; -1 before the first "
        "answer",
        _lags(broker),
    )


def _lags(broker: Broker) -> Iterator[tuple[str, float]]:
    for followed in broker.following.followed():
        topic, index = followed.partition.topic_partition
        yield (
            labels(clientid=f"ReplicaFetcherThread-{followed.leader_id}", topic=topic, partition=index),
            (followed.lag),
        )
