"""Quotas: what those who have one use, and how long they were throttled; connections that were delayed.

The labels are those who share a limit: an empty user or client id stands for all of them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import (
    PAUSE,
    ROWS_PER_STEP,
    Collected,
    counters,
    gauge,
    gauges,
    labels,
)
from barnabas.security.quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.quotas import Meter

# Kafka's names of what is measured, by quota.
USED = {
    PRODUCER_BYTE_RATE: ("kafka_server_produce_byte_rate", "Bytes per second of Produce requests"),
    CONSUMER_BYTE_RATE: ("kafka_server_fetch_byte_rate", "Bytes per second of answers to Fetch"),
    REQUEST_PERCENTAGE: ("kafka_server_request_request_time", "Percent of the event loop's time"),
    CONTROLLER_MUTATION_RATE: (
        "kafka_server_controllermutation_mutation_rate",
        "Partitions per second that were created or deleted",
    ),
}


def collect(broker: Broker) -> Collected:
    meters = list(broker.quotas.meters())
    now_ms = broker.quotas.now_ms
    for key, (name, text) in USED.items():
        of_key = [meter for meter in meters if meter.key == key]
        rows = yield from _rows(of_key, lambda meter: meter.rate.measure(now_ms))
        yield gauges(name, f"{text} of clients with a quota", rows)
    in_debt = [meter for meter in meters if meter.bucket is not None]
    rows = yield from _rows(in_debt, lambda meter: _tokens(meter, now_ms))
    yield gauges(
        "kafka_server_controllermutation_tokens",
        "Partitions that may still be created or deleted now; below 0 they have to wait",
        rows,
    )
    yield gauges(
        "barnabas_quota_bound",
        "The limit of clients with a quota",
        (yield from _rows(meters, lambda meter: meter.limit.bound, with_key=True)),
    )
    yield counters(
        "barnabas_quota_throttled_requests",
        "Requests after which a client was throttled",
        (yield from _rows(meters, lambda meter: meter.throttled_count, with_key=True)),
    )
    yield counters(
        "barnabas_quota_throttled_seconds",
        "Time for which clients were throttled",
        (yield from _rows(meters, lambda meter: meter.throttled_ms / 1000, with_key=True)),
    )
    yield from _connections(broker)


def _tokens(meter: Meter, now_ms: int) -> float:
    return 0.0 if meter.bucket is None else meter.bucket.tokens(meter.limit.bound, now_ms)


def _rows(
    meters: list[Meter], value: Callable[[Meter], float], *, with_key: bool = False
) -> Generator[None, None, list[tuple[str, float]]]:
    rows: list[tuple[str, float]] = []
    for meter in meters:
        if len(rows) % ROWS_PER_STEP == ROWS_PER_STEP - 1:
            yield PAUSE
        names = {"user": meter.limit.user, "client_id": meter.limit.client_id}
        rows.append((labels(quota=meter.key, **names) if with_key else labels(**names), value(meter)))
    return rows


def _connections(broker: Broker) -> Collected:
    limits = broker.server.limits
    delays = [
        (labels(listener=listener, limit=limit), delay)
        for limit, by_listener in (("listener", limits.listener_delays), ("address", limits.address_delays))
        for listener, delay in by_listener.items()
    ]
    yield counters(
        "barnabas_connections_delayed",
        "Connections that had to wait, for a limit of the listener or broker, or of their address",
        [(row, delay.count) for row, delay in delays],
    )
    yield counters(
        "barnabas_connections_delayed_seconds",
        "Time that those connections waited",
        [(row, delay.seconds) for row, delay in delays],
    )
    yield gauge("barnabas_connections_waiting", "Connections that wait for their turn", limits.waiting)
