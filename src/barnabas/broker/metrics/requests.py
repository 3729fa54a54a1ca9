"""Requests by API, with the time they took, and connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import (
    HISTOGRAM,
    Collected,
    Family,
    Sample,
    counter,
    counters,
    gauge,
    labels,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.dispatch import Traffic

# Buckets end at powers of two nanoseconds: from 8 microseconds to 69 seconds.
FIRST_BUCKET_BITS, LAST_BUCKET_BITS = 13, 36


def collect(broker: Broker) -> Collected:
    rows = [(broker.rows[key].name, traffic) for key, traffic in broker.dispatcher.traffic.items()]
    yield counters(
        "kafka_network_requestmetrics_requests",
        "Requests answered",
        ((labels(request=name), traffic.requests) for name, traffic in rows),
    )
    yield Family(
        "kafka_network_requestmetrics_totaltime_seconds",
        HISTOGRAM,
        "Time from the arrival of a request to its answer, waiting included",
        (sample for name, traffic in rows if traffic.requests for sample in _histogram(name, traffic)),
    )
    yield counter(
        "kafka_server_brokertopicmetrics_failedrequests",
        "Requests that failed because of a defect of the broker",
        broker.dispatcher.failures,
    )
    yield from _connections(broker)


def _histogram(request: str, traffic: Traffic) -> Iterator[Sample]:
    # All at once: the parts of a histogram must agree with each other.
    counts, nanoseconds = list(traffic.by_bit_length), traffic.nanoseconds
    name = labels(request=request)
    below = sum(counts[:FIRST_BUCKET_BITS])
    for bits in range(FIRST_BUCKET_BITS, LAST_BUCKET_BITS + 1):
        below += counts[bits]
        yield "_bucket", f'{name},le="{2**bits / 1e9}"', below
    total = sum(counts)
    yield "_bucket", f'{name},le="+Inf"', total
    yield "_sum", name, nanoseconds / 1e9
    yield "_count", name, total


def _connections(broker: Broker) -> Collected:
    yield gauge(
        "kafka_server_socketservermetrics_connection_count",
        "Open connections",
        broker.server.connection_count,
    )
    yield counter(
        "kafka_server_socketservermetrics_connection_creations",
        "Connections accepted",
        broker.server.accepted,
    )
    yield counter(
        "kafka_server_socketservermetrics_connection_refusals",
        "Connections closed because the peer broke the protocol or a limit",
        broker.server.refusals,
    )
    yield counter(
        "kafka_server_socketservermetrics_failed_handshakes",
        "Connections closed because the TLS handshake failed",
        broker.server.failed_handshakes,
    )
    authentication = broker.authentication
    for name, text, value in (
        ("successful_authentication", "Authentications with SASL", authentication.successes),
        (
            "successful_reauthentication",
            "Authentications with SASL of clients that were authenticated already (KIP-368)",
            authentication.repetitions,
        ),
        ("failed_authentication", "Failed authentications with SASL", authentication.failures.total()),
        (
            "expired_connections_killed_count",
            "Connections closed because the client did not authenticate again in time (KIP-368)",
            authentication.expired,
        ),
    ):
        yield counter(f"kafka_server_socketservermetrics_{name}", text, value)
    yield gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Fetch sessions",
        len(broker.fetch_sessions),
    )
    yield gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
        "Partitions in all fetch sessions",
        broker.fetch_sessions.partition_count,
    )
    yield counter(
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictions",
        "Fetch sessions that were removed to make room for others",
        broker.fetch_sessions.evictions,
    )
