"""What poll() returns: records in the order of each partition, also by partition and by topic."""

from collections.abc import Iterator, Mapping
from itertools import chain

from barnabas.client.types import TopicPartition
from barnabas.kernels.record_decode import ConsumerRecord

__all__ = ["ConsumerRecord", "ConsumerRecords"]


class ConsumerRecords:
    """Records by partition. Iterating goes through all of them, one partition after the other."""

    __slots__ = ("_by_partition",)

    def __init__(self, by_partition: Mapping[TopicPartition, list[ConsumerRecord]] | None = None) -> None:
        self._by_partition = dict(by_partition or {})

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return chain.from_iterable(self._by_partition.values())

    def __len__(self) -> int:
        return sum(map(len, self._by_partition.values()))

    def __bool__(self) -> bool:
        return any(self._by_partition.values())

    def __repr__(self) -> str:
        counts = ", ".join(f"{each}: {len(found)}" for each, found in self._by_partition.items())
        return f"<ConsumerRecords {counts}>" if counts else "<ConsumerRecords, none>"

    @property
    def is_empty(self) -> bool:
        """Whether there is no record at all."""
        return not self

    def partitions(self) -> set[TopicPartition]:
        """The partitions that records are of."""
        return set(self._by_partition)

    def records(self, source: TopicPartition | str) -> list[ConsumerRecord]:
        """Those of a partition, or of all partitions of a topic."""
        if isinstance(source, TopicPartition):
            return self._by_partition.get(source, [])
        return list(
            chain.from_iterable(found for each, found in self._by_partition.items() if each.topic == source)
        )
