"""Damaged ranges of logs are replaced with the copies of other replicas: a follower asks its leader first, a
leader asks the replicas that are in sync. Nothing is removed, so it does not matter which of them leads. If
no replica has a good copy, fetches of the range go on to fail with CORRUPT_MESSAGE."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

from barnabas.errors import KafkaError
from barnabas.log.scan import CorruptRange
from barnabas.replication.partition import Partition

logger = logging.getLogger(__name__)

# A larger range is not replaced: it has to fit into one answer.
RANGE_BYTES_MAX = 32 << 20


class ReplicaReader(Protocol):
    """Reads the records of another replica."""

    async def read(self, broker_id: int, partition: Partition, offset: int, bytes_max: int) -> bytes:
        """Batches from `offset` on; KafkaError or OSError if the broker does not give them."""
        ...


class Healer:
    """`healed` counts ranges; read by /metrics."""

    def __init__(self, broker_id: int, reader: ReplicaReader) -> None:
        self._broker_id = broker_id
        self._reader = reader
        self.healed = 0

    async def heal_all(self, partitions: Iterable[Partition]) -> None:
        """Try to replace all known damage; called periodically."""
        for number, partition in enumerate(list(partitions), 1):
            if partition.log.damaged and not partition.log.offline:
                await self.heal(partition)
            elif number % 200 == 0:
                await asyncio.sleep(0)

    async def heal(self, partition: Partition) -> None:
        for corrupt in partition.log.corrupt_ranges:
            for broker_id in self._sources(partition):
                if await self._heal_from(broker_id, partition, corrupt):
                    self.healed += 1
                    break

    def _sources(self, partition: Partition) -> list[int]:
        """Other brokers with the partition, the most reliable first."""
        ordered = dict.fromkeys((partition.leader, *partition.isr, *partition.replicas))
        return [broker_id for broker_id in ordered if broker_id not in (self._broker_id, -1)]

    async def _heal_from(self, broker_id: int, partition: Partition, corrupt: CorruptRange) -> bool:
        size = corrupt.end - corrupt.start
        if size > RANGE_BYTES_MAX:
            return False
        try:
            data = await self._reader.read(broker_id, partition, corrupt.first_offset, size)
            if partition.log.closed:
                return False
            return partition.log.replace_damage(corrupt, memoryview(data)[:size])
        except (KafkaError, OSError) as error:
            logger.info(
                "%s: broker %d cannot give offset %d: %s",
                partition.topic_partition,
                broker_id,
                corrupt.first_offset,
                error,
            )
            return False
