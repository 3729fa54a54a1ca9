"""One scrape: asks every subject for its families and writes them, a step at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.broker.metrics import (
    cluster,
    exposition,
    following,
    groups,
    logs,
    partitions,
    process,
    quotas,
    requests,
    transactions,
    zookeeper,
)
from barnabas.broker.metrics.families import Collected

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

SUBJECTS = (
    requests.collect,
    quotas.collect,
    partitions.collect,
    following.collect,
    cluster.collect,
    zookeeper.collect,
    groups.collect,
    transactions.collect,
    logs.collect,
)


class Scraper:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._loop_idle = process.LoopIdle()
        # Scrapes that come at the same time take turns, so that the loop has one of them at most to work on.
        self._lock = asyncio.Lock()

    async def scrape(self, *, open_metrics: bool = False, gzip: bool = False) -> bytes:
        async with self._lock:
            return await exposition.write(self._collect(), open_metrics=open_metrics, gzip=gzip)

    def _collect(self) -> Collected:
        for collect in SUBJECTS:
            yield from collect(self._broker)
        yield from process.collect()
        yield from self._loop_idle.collect()
