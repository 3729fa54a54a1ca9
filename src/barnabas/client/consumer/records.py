"""What poll() returns: the records, by partition and by topic, in the order of each partition."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Generic

from barnabas.client.generic import K, V
from barnabas.client.habits import Hinted
from barnabas.client.types import TopicPartition
from barnabas.kernels.record_decode import ConsumerRecord

__all__ = ["ConsumerRecord", "ConsumerRecords"]


class ConsumerRecords(Hinted, Generic[K, V]):
    """Records by partition. Iterating returns all of them, one partition after the other."""

    __slots__ = ("_by_partition",)

    def __init__(
        self, by_partition: Mapping[TopicPartition, list[ConsumerRecord[K, V]]] | None = None
    ) -> None:
        self._by_partition = dict(by_partition or {})

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        return chain.from_iterable(self._by_partition.values())

    def __len__(self) -> int:
        return sum(map(len, self._by_partition.values()))

    def __bool__(self) -> bool:
        return any(self._by_partition.values())

    def __repr__(self) -> str:
        counts = ", ".join(f"{each}: {len(records)}" for each, records in self._by_partition.items())
        return f"<ConsumerRecords {counts}>" if counts else "<ConsumerRecords, none>"

    @property
    def is_empty(self) -> bool:
        """Whether there is no record at all."""
        return not self

    def partitions(self) -> set[TopicPartition]:
        """The partitions that have records here."""
        return set(self._by_partition)

    def records(self, source: TopicPartition | str) -> list[ConsumerRecord[K, V]]:
        """The records of a partition, or of all partitions of a topic."""
        if isinstance(source, TopicPartition):
            return self._by_partition.get(source, [])
        return list(
            chain.from_iterable(
                records for each, records in self._by_partition.items() if each.topic == source
            )
        )
