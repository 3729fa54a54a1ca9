"""The session with ZooKeeper; nothing for a broker that runs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import Collected, counter, gauge

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def collect(broker: Broker) -> Collected:
    state = broker.metadata.connection_state
    if state is None:
        return
    yield gauge(
        "barnabas_zookeeper_connected",
        "1 while this broker is connected to ZooKeeper",
        int(state.is_connected),
    )
    prefix = "kafka_server_sessionexpirelistener_zookeeper"
    yield counter(prefix + "disconnects", "Lost connections to ZooKeeper", state.disconnects)
    yield counter(prefix + "expires", "Sessions that ZooKeeper has expired", state.expired_sessions)
