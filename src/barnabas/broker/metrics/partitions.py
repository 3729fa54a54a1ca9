"""Partitions held here: traffic per topic, offsets and sizes per partition, and how many are in trouble."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import (
    PAUSE,
    ROWS_PER_STEP,
    Collected,
    Family,
    counter,
    counters,
    gauge,
    gauges,
    labels,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.replication.partition import Partition, RequestCounts

UNKNOWN_TOPIC = ""


class TopicTotals:
    """Sums over the partitions of one topic."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "produces",
        "records_in",
    )

    def __init__(self) -> None:
        self.bytes_in = self.records_in = self.bytes_out = 0
        self.produces = self.failed_produces = self.fetches = self.failed_fetches = 0

    def add(self, counts: RequestCounts) -> None:
        self.bytes_out += counts.bytes_out
        self.produces += counts.produces
        self.failed_produces += counts.failed_produces
        self.fetches += counts.fetches
        self.failed_fetches += counts.failed_fetches


class Health:
    """Counts of partitions by the problem that they have."""

    def __init__(self) -> None:
        self.leaders = self.under_replicated = self.under_min_isr = self.at_min_isr = self.offline = 0

    def add(self, partition: Partition) -> None:
        self.offline += partition.log.offline
        if partition.is_leader:
            in_sync, required = len(partition.isr), partition.min_isr
            self.leaders += 1
            self.under_replicated += in_sync < len(partition.replicas)
            self.under_min_isr += in_sync < required
            self.at_min_isr += in_sync == required


def collect(broker: Broker) -> Collected:
    partitions = list(broker.replicas.all())
    # Each family goes through all partitions; their labels are written once.
    rows: list[tuple[str, Partition]] = []
    totals: dict[str, TopicTotals] = {}
    health = Health()
    for number, partition in enumerate(partitions):
        if number % ROWS_PER_STEP == 0:
            yield PAUSE
        topic, index = partition.topic_partition
        rows.append((labels(topic=topic, partition=index), partition))
        topic_totals = totals.setdefault(topic, TopicTotals())
        topic_totals.bytes_in += partition.bytes_in
        topic_totals.records_in += partition.records_in
        topic_totals.produces += partition.plain_produces
        topic_totals.add(partition.requests)
        health.add(partition)
    totals.setdefault(UNKNOWN_TOPIC, TopicTotals()).add(broker.unknown_requests)
    yield from _topics(totals)
    yield from _logs(rows)
    yield from _health(health, len(partitions))
    yield from _in_sync(broker, rows)


def _topics(totals: dict[str, TopicTotals]) -> Iterator[Family]:
    rows = [
        (labels(topic=name), of_topic)
        for name, of_topic in totals.items()
        if of_topic.produces or of_topic.fetches or of_topic.records_in
    ]

    def per_topic(name: str, text: str, value: Callable[[TopicTotals], int]) -> Family:
        return counters(
            f"kafka_server_brokertopicmetrics_{name}",
            text,
            ((row_labels, value(of_topic)) for row_labels, of_topic in rows),
        )

    yield per_topic("bytesin", "Bytes of record batches appended", lambda topic: topic.bytes_in)
    yield per_topic("messagesin", "Records appended", lambda topic: topic.records_in)
    yield per_topic("bytesout", "Bytes of record batches fetched", lambda topic: topic.bytes_out)
    yield per_topic(
        "totalproducerequests",
        "Partitions in Produce requests; an empty topic stands for partitions that are not here",
        lambda topic: topic.produces,
    )
    yield per_topic(
        "failedproducerequests",
        "Partitions in Produce requests that were answered with an error",
        lambda topic: topic.failed_produces,
    )
    yield per_topic(
        "totalfetchrequests",
        "Partitions in answers to Fetch; an empty topic stands for partitions that are not here",
        lambda topic: topic.fetches,
    )
    yield per_topic(
        "failedfetchrequests",
        "Partitions in answers to Fetch that have an error",
        lambda topic: topic.failed_fetches,
    )


def _logs(rows: list[tuple[str, Partition]]) -> Iterator[Family]:
    yield gauges("kafka_log_log_size", "Bytes on disk", ((row, part.log.size) for row, part in rows))
    yield gauges(
        "kafka_log_log_numlogsegments", "Segments", ((row, len(part.log.segments)) for row, part in rows)
    )
    yield gauges(
        "kafka_log_log_logstartoffset",
        "First offset",
        ((row, part.log.log_start_offset) for row, part in rows),
    )
    yield gauges(
        "kafka_log_log_logendoffset", "Next offset", ((row, part.log.log_end_offset) for row, part in rows)
    )


def _in_sync(broker: Broker, rows: list[tuple[str, Partition]]) -> Iterator[Family]:
    surroundings = broker.replicas.surroundings
    prefix = "kafka_server_replicamanager_"
    yield counter(prefix + "isrshrinks", "Followers removed from an ISR", surroundings.isr_shrinks)
    yield counter(prefix + "isrexpands", "Followers added to an ISR", surroundings.isr_expands)
    yield counter(
        prefix + "failedisrupdates",
        "Changes of an ISR that the controller did not take",
        surroundings.failed_isr_changes,
    )
    yield gauges(
        "barnabas_follower_lag",
        "Records that a follower of a partition led here has not fetched yet",
        (
            (
                labels(
                    topic=part.topic_partition.topic, partition=part.topic_partition.partition, follower=id_
                ),
                max(0, part.log.log_end_offset - max(0, state.end_offset)),
            )
            for _, part in rows
            if part.leading is not None
            for id_, state in part.leading.followers.items()
        ),
    )


def _health(health: Health, count: int) -> Iterator[Family]:
    prefix = "kafka_server_replicamanager_"
    yield gauge(prefix + "partitioncount", "Replicas held here", count)
    yield gauge(prefix + "leadercount", "Partitions led here", health.leaders)
    yield gauge(
        prefix + "underreplicatedpartitions",
        "Partitions led here with fewer replicas in sync than they have",
        health.under_replicated,
    )
    yield gauge(
        prefix + "underminisrpartitioncount",
        "Partitions led here with fewer replicas in sync than min.insync.replicas",
        health.under_min_isr,
    )
    yield gauge(
        prefix + "atminisrpartitioncount",
        "Partitions led here with as many replicas in sync as min.insync.replicas",
        health.at_min_isr,
    )
    yield gauge(
        prefix + "offlinereplicacount", "Replicas held here whose log directory has failed", health.offline
    )
