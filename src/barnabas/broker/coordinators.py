"""The shards of one internal topic that this broker coordinates.

A shard is opened when the broker becomes the leader of a partition, loaded a portion at a time between other
work, and closed when the partition moves to another broker or gets a new leader epoch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from barnabas.broker.journal import PartitionJournal
from barnabas.broker.topic_creation import create_missing_topics
from barnabas.coordination.hashing import partition_for
from barnabas.coordination.runtime import COMMIT_TIMEOUT_MS, Shard
from barnabas.coordination.step import Machine, Step
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.topics import NewTopic

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.metadata.image import MetadataImage
    from barnabas.replication.partition import Partition

logger = logging.getLogger(__name__)
M = TypeVar("M", bound=Machine)


class _Opened(NamedTuple, Generic[M]):
    leader_epoch: int
    shard: Shard[M]


class Coordinator(Generic[M]):
    """`make_machine(leader_epoch)` makes the machine of a new shard; `after` gets its committed steps."""

    def __init__(
        self,
        broker: Broker,
        topic: NewTopic,
        make_machine: Callable[[int], M],
        after: Callable[[Shard[M], Step[Any]], None] | None = None,
        *,
        commit_timeout_ms: int = COMMIT_TIMEOUT_MS,
    ) -> None:
        self._after = after
        self._commit_timeout_ms = commit_timeout_ms
        self.topic = topic.name
        self._new_topic = topic
        self._broker = broker
        self._make_machine = make_machine
        self._shards: dict[int, _Opened[M]] = {}
        self._loading: set[asyncio.Task[None]] = set()
        self._last_refusal: str | None = None

    # ---- finding

    def partition_of(self, key: str) -> int:
        """The partition that holds the key's state; COORDINATOR_NOT_AVAILABLE before the topic exists."""
        topic = self._broker.image.topic(self.topic)
        if topic is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return partition_for(key, len(topic.partitions))

    def leader_of(self, key: str) -> int:
        """The broker that coordinates the key, by the newest metadata; COORDINATOR_NOT_AVAILABLE if none."""
        partition = self._broker.image.partition(self.topic, self.partition_of(key))
        if partition is None or not partition.has_leader:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return partition.leader

    def shard_of(self, key: str) -> Shard[M]:
        return self.shard(self.partition_of(key))

    def shard(self, index: int) -> Shard[M]:
        """The shard of a partition, loaded or not; NOT_COORDINATOR when another broker has it."""
        opened = self._shards.get(index)
        if opened is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return opened.shard

    def shards(self) -> Iterator[Shard[M]]:
        """The shards that are loaded."""
        return (shard for _, shard in self._shards.values() if shard.is_active)

    @property
    def is_loading(self) -> bool:
        return any(not shard.is_active for _, shard in self._shards.values())

    async def ensure_topic(self) -> None:
        """Create the internal topic on first use. COORDINATOR_NOT_AVAILABLE while it cannot be created, such
        as while fewer brokers live than it has replicas: clients try again."""
        if self._broker.image.topic(self.topic) is not None:
            return
        topic = self._new_topic
        if not self._broker.is_clustered:
            topic = replace(topic, replication_factor=1)
        refusal = (await create_missing_topics(self._broker, [topic])).get(self.topic)
        if refusal is not None:
            self._log_refusal(refusal)
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, refusal.message) from refusal

    def _log_refusal(self, refusal: KafkaError) -> None:
        """Clients repeat their request every few milliseconds; the log gets a line when the reason is new."""
        if refusal.message != self._last_refusal:
            self._last_refusal = refusal.message
            logger.warning("cannot create %s yet: %s", self.topic, refusal)

    # ---- following the metadata

    def follow(self, image: MetadataImage) -> None:
        """Have a shard for each partition that this broker leads, in its current leader epoch."""
        topic = image.topic(self.topic)
        count = 0 if topic is None else len(topic.partitions)
        for index in list(self._shards):
            if index >= count:
                self._close_shard(index)
        for index in range(count):
            partition = self._broker.replicas.get(self.topic, index)
            led = partition if partition is not None and partition.is_leader else None
            opened = self._shards.get(index)
            if opened is not None and (led is None or opened.leader_epoch != led.leader_epoch):
                self._close_shard(index)
                opened = None
            if opened is None and led is not None:
                self._open_shard(index, led)

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
        shard = Shard(
            machine,
            journal,
            loop,
            self._broker.clock,
            self._after,
            commit_timeout_ms=self._commit_timeout_ms,
        )
        self._shards[index] = _Opened(partition.leader_epoch, shard)
        if partition.log.log_start_offset == partition.log.log_end_offset:
            # There is nothing to replay, so the shard can be used at once, as on the first use of the topic.
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
            # Clients get COORDINATOR_LOAD_IN_PROGRESS and retry until the cause is repaired.
            logger.exception("cannot load partition %d of %s", index, self.topic)

    def _close_shard(self, index: int) -> None:
        shard = self._shards.pop(index).shard
        self._refuse_waiting(shard)
        shard.close()

    def _refuse_waiting(self, shard: Shard[M]) -> None:
        """Answer the calls that are parked in this shard, because it is about to be closed."""
