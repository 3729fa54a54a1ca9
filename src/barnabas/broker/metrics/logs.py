"""Log directories and the log cleaner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import Collected, counter, gauge

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def collect(broker: Broker) -> Collected:
    yield gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that failed",
        len(broker.logs.offline_dirs),
    )
    health = broker.cleaner.health()
    prefix = "kafka_log_logcleaner_"
    yield gauge(prefix + "healthy", "1 while the cleaner works", int(health.last_error is None))
    yield gauge(prefix + "jobs", "Partitions that are being cleaned now", len(health.current))
    yield counter(prefix + "runs", "Partitions cleaned", health.runs)
    yield counter(prefix + "bytesread", "Bytes the cleaner has read", health.bytes_read)
    yield counter(prefix + "byteswritten", "Bytes the cleaner has kept", health.bytes_written)
    yield gauge(
        "kafka_log_logcleanermanager_uncleanablepartitionscount",
        "Partitions that are not cleaned any more after an error",
        len(health.uncleanable),
    )
