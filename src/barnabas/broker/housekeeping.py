"""What a broker does now and then: retention, flushes, checkpoints, removal of deleted files, expiry.

Each job is a short synchronous step on the loop; only fsync goes to a thread. A job that fails is logged
and tried again at its next turn: the log layer has already taken a broken directory offline."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger(__name__)

TRASH_SECONDS = 1.0
ROLL_SECONDS = 10.0
INTERVAL_SECONDS_MAX = 24 * 3600.0


class Housekeeping:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        config, logs = self._broker.config, self._broker.logs
        self._every(config["log.retention.check.interval.ms"] / 1000, logs.apply_retention)
        self._every(config["log.flush.offset.checkpoint.interval.ms"] / 1000, logs.checkpoint_recovery_points)
        self._every(config["log.flush.start.offset.checkpoint.interval.ms"] / 1000, logs.checkpoint_log_starts)
        self._every(
            config["replica.high.watermark.checkpoint.interval.ms"] / 1000, logs.checkpoint_high_watermarks
        )
        self._every(config["producer.id.expiration.check.interval.ms"] / 1000, logs.expire_producers)
        self._every(TRASH_SECONDS, logs.delete_scheduled)
