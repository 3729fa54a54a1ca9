"""What /metrics shows, in Prometheus' form, under the names Kafka's dashboards know.

Nothing is kept here: every figure is read from the broker when it is asked for. prometheus-client is
imported on the first scrape, so that a broker nobody watches does not pay for it."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client import Metric

    from barnabas.broker.broker import Broker

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render(broker: Broker) -> bytes:
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(_Collector(broker))
    return generate_latest(registry)


class _Collector:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def collect(self) -> Iterator[Metric]:
        yield from _traffic(self._broker)
        yield from _requests(self._broker)
        yield from _partitions(self._broker)
        yield from _cluster(self._broker)
        yield from _cleaner(self._broker)
        yield from _process()


def _traffic(broker: Broker) -> Iterator[Metric]:
    topics: dict[str, tuple[int, int]] = {}
    for partition in broker.replicas.all():
        if partition.records_in:
            name = partition.topic_partition.topic
            size, count = topics.get(name, (0, 0))
            topics[name] = (size + partition.bytes_in, count + partition.records_in)
    yield _family(
        "counter",
        "kafka_server_brokertopicmetrics_bytesin",
        "Bytes of record batches appended",
        ["topic"],
        [((name,), size) for name, (size, _) in topics.items()],
    )
    yield _family(
        "counter",
        "kafka_server_brokertopicmetrics_messagesin",
        "Records appended",
        ["topic"],
        [((name,), count) for name, (_, count) in topics.items()],
    )
    yield _single(
        "counter",
        "kafka_server_brokertopicmetrics_bytesout",
        "Bytes of record batches fetched",
        sum(partition.requests.bytes_out for partition in broker.replicas.all()),
    )


def _requests(broker: Broker) -> Iterator[Metric]:
    rows = [(broker.rows[key].name, traffic) for key, traffic in broker.dispatcher.traffic.items()]
    yield _family(
        "counter",
        "kafka_network_requestmetrics_requests",
        "Requests answered",
        ["request"],
        [((name,), traffic.requests) for name, traffic in rows],
    )
    yield _family(
        "counter",
        "kafka_network_requestmetrics_totaltime_seconds",
        "Time from a request's arrival to its answer, waiting included",
        ["request"],
        [((name,), traffic.nanoseconds / 1e9) for name, traffic in rows],
    )
    yield _single(
        "counter",
        "kafka_server_brokertopicmetrics_failedrequests",
        "Requests that failed for a defect of the broker",
        broker.dispatcher.failures,
    )
    yield _single(
        "gauge",
        "kafka_server_socketservermetrics_connection_count",
        "Open connections",
        broker.server.connection_count,
    )
    yield _single(
        "counter",
        "kafka_server_socketservermetrics_connection_creations",
        "Connections accepted",
        broker.server.accepted,
    )
    yield _single(
        "counter",
        "kafka_server_socketservermetrics_connection_refusals",
        "Connections closed because the peer broke the protocol or a limit",
        broker.server.refusals,
    )
    yield _single(
        "gauge",
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Fetch sessions",
        len(broker.fetch_sessions),
    )
    yield _single(
        "counter",
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictions",
        "Fetch sessions that had to make room",
        broker.fetch_sessions.evictions,
    )


def _partitions(broker: Broker) -> Iterator[Metric]:
    partitions = list(broker.replicas.all())
    labels = [(str(part.topic_partition.topic), str(part.topic_partition.partition)) for part in partitions]

    def per_partition(name: str, text: str, values: list[int]) -> Metric:
        return _family("gauge", name, text, ["topic", "partition"], list(zip(labels, values, strict=True)))

    yield per_partition("kafka_log_log_size", "Bytes on disk", [part.log.size for part in partitions])
    yield per_partition(
        "kafka_log_log_numlogsegments", "Segments", [len(part.log.segments) for part in partitions]
    )
    yield per_partition(
        "kafka_log_log_logstartoffset", "First offset", [part.log.log_start_offset for part in partitions]
    )
    yield per_partition(
        "kafka_log_log_logendoffset", "Next offset", [part.log.log_end_offset for part in partitions]
    )
    yield _single(
        "gauge", "kafka_server_replicamanager_partitioncount", "Replicas held here", len(partitions)
    )
    yield _single(
        "gauge",
        "kafka_server_replicamanager_leadercount",
        "Partitions led here",
        sum(part.is_leader for part in partitions),
    )
    yield _single(
        "gauge",
        "kafka_server_replicamanager_underreplicatedpartitions",
        "Partitions led here that miss an in-sync replica",
        sum(part.is_leader and len(part.isr) < len(part.replicas) for part in partitions),
    )
    yield _single(
        "gauge",
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that failed",
        len(broker.logs.offline_dirs),
    )


def _cluster(broker: Broker) -> Iterator[Metric]:
    image = broker.image
    yield _single(
        "gauge",
        "kafka_controller_kafkacontroller_activecontrollercount",
        "1 on the controller",
        int(broker.controller.active),
    )
    yield _single(
        "gauge",
        "kafka_controller_kafkacontroller_globaltopiccount",
        "Topics of the cluster",
        len(image.topics),
    )
    yield _single(
        "gauge",
        "kafka_controller_kafkacontroller_globalpartitioncount",
        "Partitions of the cluster",
        sum(len(topic.partitions) for topic in image.topics.values()),
    )


def _cleaner(broker: Broker) -> Iterator[Metric]:
    health = broker.cleaner.health()
    yield _single(
        "gauge", "kafka_log_logcleaner_healthy", "1 while the cleaner works", int(health.last_error is None)
    )
    yield _single("counter", "kafka_log_logcleaner_runs", "Partitions cleaned", health.runs)
    yield _single(
        "counter", "kafka_log_logcleaner_bytesread", "Bytes the cleaner has read", health.bytes_read
    )
    yield _single(
        "counter", "kafka_log_logcleaner_byteswritten", "Bytes the cleaner has kept", health.bytes_written
    )
    yield _single(
        "gauge",
        "kafka_log_logcleanermanager_uncleanablepartitionscount",
        "Partitions set aside after an error",
        len(health.uncleanable),
    )


def _process() -> Iterator[Metric]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield _single(
        "counter", "process_cpu_seconds", "CPU time of this process", usage.ru_utime + usage.ru_stime
    )
    yield _single(
        "gauge", "process_resident_memory_max_bytes", "Largest resident size so far", usage.ru_maxrss * 1024
    )


def _single(kind: str, name: str, text: str, value: float) -> Metric:
    return _family(kind, name, text, [], [((), value)])


def _family(
    kind: str, name: str, text: str, labels: list[str], samples: list[tuple[tuple[str, ...], Any]]
) -> Metric:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    made = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
    family = made(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(list(values), value)
    return family
