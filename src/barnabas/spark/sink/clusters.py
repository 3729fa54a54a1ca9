"""The cluster as the exactly-once sink uses it: one client per process, kept until the process ends, because
Spark reuses its Python workers."""

import os
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.config import producer_config
from barnabas.client.errors import KafkaTimeoutError
from barnabas.client.runtime import IoThread

_T = TypeVar("_T")


class SinkCluster:
    """`cluster` belongs to the I/O thread: use it in coroutines that `call` runs there."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self.config = producer_config(client)
        self.block_seconds = self.config.seconds("max.block.ms")
        self._io = IoThread("barnabas-spark-sink").start()
        self.cluster: Cluster = self._io.call(self._open())

    async def _open(self) -> Cluster:
        cluster = Cluster(self.config, allow_auto_create=True)
        cluster.start()
        return cluster

    def close(self) -> None:
        self._io.call(self.cluster.close())
        self._io.stop()

    def call(self, coroutine: Coroutine[Any, Any, _T], seconds: float | None = None) -> _T:
        return self._io.call(coroutine, seconds)

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has. A missing topic is created if the cluster allows it."""
        try:
            return len(self.call(self.cluster.topic(topic), self.block_seconds).partitions)
        except KafkaTimeoutError:
            raise KafkaTimeoutError(
                f"got no metadata of topic {topic!r} within max.block.ms: check that it exists"
            ) from None


_CLUSTERS: dict[tuple[int, frozenset[tuple[str, str]]], SinkCluster] = {}
_LOCK = threading.Lock()


def cluster_of(client: Mapping[str, str]) -> SinkCluster:
    """The cluster for these settings: one object per process, and a new one after a fork."""
    key = (os.getpid(), frozenset(client.items()))
    with _LOCK:
        if key not in _CLUSTERS:
            _CLUSTERS[key] = SinkCluster(client)
        return _CLUSTERS[key]


def close_all() -> None:
    """Close the connections of this process; for tests."""
    with _LOCK:
        while _CLUSTERS:
            _CLUSTERS.popitem()[1].close()
