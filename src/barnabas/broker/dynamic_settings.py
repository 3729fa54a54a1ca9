"""Settings that change while the broker runs: which component takes the change of which key.

`TAKEN_BY` is the one table. Each dynamic key of `config/` that has an effect must be in it; a test changes
each key on a running broker and looks at the component (tests/unit/broker/test_dynamic_settings.py). First
the broker's `config` is replaced; then each component takes what concerns it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from barnabas.broker.following import reconfigure_following
from barnabas.config.keys_security import TLS_KEYS

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


class Component(Enum):
    # Replicas.follow gives every log the settings of its topic again; these keys are their defaults.
    PARTITIONS = "the partitions"
    # The handlers read the key from Broker.config with each request.
    REQUESTS = "the requests"
    CONNECTIONS = "the limits on connections"
    LISTENERS = "the listeners"
    TLS = "the certificates of TLS listeners"
    LOGS = "the log manager"
    CLEANER = "the log cleaner"
    FOLLOWING = "the fetchers of followed partitions"
    LEADING = "the throttle of leaders"
    MOVES = "moves between log directories"
    AUTHENTICATION = "the authentication with SASL"
    # Read from Broker.config with each new connection: see broker/peer_security.py.
    PEERS = "the connections to other brokers"


TAKEN_BY: Mapping[str, Component] = {
    "compression.gzip.level": Component.PARTITIONS,
    "compression.lz4.level": Component.PARTITIONS,
    "compression.type": Component.PARTITIONS,
    "compression.zstd.level": Component.PARTITIONS,
    "follower.replication.throttled.rate": Component.FOLLOWING,
    "leader.replication.throttled.rate": Component.LEADING,
    "listener.security.protocol.map": Component.LISTENERS,
    "listeners": Component.LISTENERS,
    "log.cleaner.backoff.ms": Component.CLEANER,
    "log.cleaner.dedupe.buffer.size": Component.CLEANER,
    "log.cleaner.delete.retention.ms": Component.PARTITIONS,
    "log.cleaner.io.buffer.load.factor": Component.CLEANER,
    "log.cleaner.io.max.bytes.per.second": Component.CLEANER,
    "log.cleaner.max.compaction.lag.ms": Component.PARTITIONS,
    "log.cleaner.min.cleanable.ratio": Component.PARTITIONS,
    "log.cleaner.min.compaction.lag.ms": Component.PARTITIONS,
    "log.cleaner.threads": Component.CLEANER,
    "log.cleanup.policy": Component.PARTITIONS,
    "log.flush.interval.messages": Component.PARTITIONS,
    "log.flush.interval.ms": Component.PARTITIONS,
    "log.index.interval.bytes": Component.PARTITIONS,
    "log.index.size.max.bytes": Component.PARTITIONS,
    "log.message.timestamp.after.max.ms": Component.PARTITIONS,
    "log.message.timestamp.before.max.ms": Component.PARTITIONS,
    "log.message.timestamp.type": Component.PARTITIONS,
    "log.preallocate": Component.PARTITIONS,
    "log.retention.bytes": Component.PARTITIONS,
    "log.retention.ms": Component.PARTITIONS,
    "log.roll.jitter.ms": Component.PARTITIONS,
    "log.roll.ms": Component.PARTITIONS,
    "log.segment.bytes": Component.PARTITIONS,
    "log.segment.delete.delay.ms": Component.PARTITIONS,
    "max.connection.creation.rate": Component.CONNECTIONS,
    "max.connections": Component.CONNECTIONS,
    "max.connections.per.ip": Component.CONNECTIONS,
    "max.connections.per.ip.overrides": Component.CONNECTIONS,
    "message.max.bytes": Component.PARTITIONS,
    "min.insync.replicas": Component.PARTITIONS,
    "num.replica.fetchers": Component.FOLLOWING,
    "producer.id.expiration.ms": Component.LOGS,
    "replica.alter.log.dirs.io.max.bytes.per.second": Component.MOVES,
    "sasl.enabled.mechanisms": Component.AUTHENTICATION,
    "sasl.mechanism.inter.broker.protocol": Component.AUTHENTICATION,
    **dict.fromkeys(TLS_KEYS, Component.TLS),
    "ssl.endpoint.identification.algorithm": Component.PEERS,
    "ssl.protocol": Component.PEERS,
    "transaction.partition.verification.enable": Component.REQUESTS,
    "unclean.leader.election.enable": Component.PARTITIONS,
}


def _reconfigure_connections(broker: Broker) -> None:
    broker.server.reconfigure(broker.config)


def _reconfigure_listeners(broker: Broker) -> None:
    broker.server.listen_on(broker.config.listeners)


def _reconfigure_tls(broker: Broker) -> None:
    broker.server.reconfigure_tls(broker.config)


def _reconfigure_logs(broker: Broker) -> None:
    broker.logs.producer_id_expiration_ms = broker.config["producer.id.expiration.ms"]


def _reconfigure_leading(broker: Broker) -> None:
    throttle = broker.replicas.surroundings.throttle
    throttle.bytes_per_second = broker.config["leader.replication.throttled.rate"]


def _reconfigure_cleaner(broker: Broker) -> None:
    if broker.cleaning is not None:
        broker.cleaning.reconfigure(broker.config)


# Each is called after every change of dynamic settings and may find that nothing of its own has changed.
TAKERS: Mapping[Component, Callable[[Broker], None]] = {
    Component.CONNECTIONS: _reconfigure_connections,
    # Before the listeners: a new one gets the new settings.
    Component.TLS: _reconfigure_tls,
    Component.LISTENERS: _reconfigure_listeners,
    Component.LOGS: _reconfigure_logs,
    Component.CLEANER: _reconfigure_cleaner,
    Component.FOLLOWING: reconfigure_following,
    Component.LEADING: _reconfigure_leading,
    Component.AUTHENTICATION: lambda broker: broker.authentication.reconfigure(),
    Component.MOVES: lambda broker: broker.log_moves.reconfigure(),
}
