"""What the partitions of this broker need to lead: its settings, and the way to the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.replication.ports import Surroundings
from barnabas.replication.throttling import RateLimit

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


def surroundings_of(broker: Broker) -> Surroundings:
    config = broker.config
    throttle = RateLimit(
        broker.clock,
        config["replication.quota.window.num"],
        config["replication.quota.window.size.seconds"],
    )
    throttle.bytes_per_second = config["leader.replication.throttled.rate"]

    return Surroundings(
        broker.id,
        broker.clock,
        lag_seconds_max=config["replica.lag.time.max.ms"] / 1000,
        isr_changes=broker.isr_changes,
        throttle=throttle,
        is_image_newest_since=broker.newest_metadata.is_newest_since,
    )
