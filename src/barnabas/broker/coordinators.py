"""The shards of one internal topic that this broker coordinates: made when it becomes the leader of a
partition, loaded a portion at a time beside other work, closed when the partition moves away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from barnabas.broker.journal import PartitionJournal
from barnabas.coordination.hashing import partition_for
from barnabas.coordination.runtime import Shard
from barnabas.coordination.step import Machine, Step
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.topics import CreatedTopic, NewTopic

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.metadata.image import MetadataImage
    from barnabas.replication.partition import Partition

logger = logging.getLogger(__name__)
M = TypeVar("M", bound=Machine)


class Coordinator(Generic[M]):
    """`make_machine(leader epoch)` gives the empty state of a shard; `after` is shown its committed steps."""

    def __init__(
        self,
        broker: Broker,
        topic: NewTopic,
        make_machine: Callable[[int], M],
        after: Callable[[Shard[M], Step[Any]], None] | None = None,
    ) -> None:
        self._after = after
        self.topic = topic.name
        self._new_topic = topic
        self._broker = broker
        self._make_machine = make_machine
        self._shards: dict[int, tuple[int, Shard[M]]] = {}
        self._loading: set[asyncio.Task[None]] = set()

    # ---- finding

    def partition_of(self, key: str) -> int:
        """The partition that has the key's state; COORDINATOR_NOT_AVAILABLE before the topic exists."""
        topic = self._broker.image.topic(self.topic)
        if topic is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return partition_for(key, len(topic.partitions))

    def shard_of(self, key: str) -> Shard[M]:
        return self.shard(self.partition_of(key))

    def shard(self, index: int) -> Shard[M]:
        found = self._shards.get(index)
        if found is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return found[1]

    def shards(self) -> Iterator[Shard[M]]:
        """Those that are loaded."""
        return (shard for _, shard in self._shards.values() if shard.is_active)

    @property
    def is_loading(self) -> bool:
        return any(not shard.is_active for _, shard in self._shards.values())

    async def ensure_topic(self) -> None:
        """Create the internal topic on first use."""
        if self._broker.image.topic(self.topic) is not None:
            return
        # A cluster that is smaller than the replication factor gets as many replicas as it has brokers.
        factor = min(self._new_topic.replication_factor, max(1, len(self._broker.image.brokers)))
        topic = replace(self._new_topic, replication_factor=factor)
        result = (await self._broker.controller.create_topics([topic]))[self.topic]
        if not isinstance(result, CreatedTopic) and result.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise result

    # ---- following the metadata

    def follow(self, image: MetadataImage) -> None:
        """Hold a shard for each partition led here, in its present term, and for no other."""
        topic = image.topic(self.topic)
        count = 0 if topic is None else len(topic.partitions)
        for index in list(self._shards):
            if index >= count:
                self._close_shard(index)
        for index in range(count):
            partition = self._broker.replicas.get(self.topic, index)
            term = partition.leader_epoch if partition is not None and partition.is_leader else -1
            known = self._shards.get(index)
            if known is not None and known[0] != term:
                self._close_shard(index)
                known = None
            if known is None and partition is not None and term >= 0:
                self._open_shard(index, partition)

    async def close(self) -> None:
        for index in list(self._shards):
            self._close_shard(index)
        for task in list(self._loading):
            task.cancel()
        await asyncio.gather(*self._loading, return_exceptions=True)

    def _open_shard(self, index: int, partition: Partition) -> None:
        journal = PartitionJournal(partition, self._broker.clock)
        loop = asyncio.get_running_loop()
        machine = self._make_machine(partition.leader_epoch)
        shard = Shard(machine, journal, loop, self._broker.clock, self._after)
        self._shards[index] = (partition.leader_epoch, shard)
        if partition.log.log_start_offset == partition.log.log_end_offset:
            # Nothing to replay: usable in this very turn, as on the first use of the topic.
            for _ in shard.load():
                continue
            return
        task = loop.create_task(self._load(index, shard))
        self._loading.add(task)
        task.add_done_callback(self._loading.discard)

    async def _load(self, index: int, shard: Shard[M]) -> None:
        try:
            for _ in shard.load():
                await asyncio.sleep(0)
        except Exception:
            # It stays in COORDINATOR_LOAD_IN_PROGRESS, which clients retry; the cause is in the log.
            logger.exception("partition %d of %s cannot be loaded", index, self.topic)

    def _close_shard(self, index: int) -> None:
        _, shard = self._shards.pop(index)
        self._refuse_waiting(shard)
        shard.close()

    def _refuse_waiting(self, shard: Shard[M]) -> None:
        """Send away whoever waits for an answer of this shard."""
