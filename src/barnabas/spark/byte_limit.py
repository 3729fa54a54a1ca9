"""Limits the bytes of a batch (maxBytesPerTrigger), with an estimate of the size of records in the log."""

from collections.abc import Mapping
from typing import Protocol

from barnabas.ids import TopicPartition
from barnabas.spark.offsets import Offsets
from barnabas.spark.planning import capped_by_bytes

# A backlog that seems smaller than this share of the limit is not measured again.
SHARE_WITHOUT_SAMPLE = 0.25


class Samples(Protocol):
    def sample(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        """About how many bytes a record takes, measured at the offsets."""


class ByteLimit:
    """Measures the records where a batch begins. While batches stay far below the limit, earlier results are
    used, so that a sample does not cost more than the batch itself."""

    def __init__(self, brokers: Samples, bytes_max: int) -> None:
        self._brokers = brokers
        self._bytes_max = bytes_max
        self._sizes: dict[TopicPartition, float] = {}

    def ends(self, begin: Offsets, ends: Offsets) -> Offsets:
        """The ends of a batch that has about as many bytes as allowed, at most."""
        waiting = {each: begin[each] for each, offset in ends.items() if offset > begin[each]}
        seems_large = self.bytes(begin, ends) > self._bytes_max * SHARE_WITHOUT_SAMPLE
        if seems_large or not waiting.keys() <= self._sizes.keys():
            self._sizes.update(self._brokers.sample(waiting) if waiting else {})
        return capped_by_bytes(begin, ends, self._sizes, self._bytes_max)

    def bytes(self, begin: Offsets, ends: Offsets) -> int:
        """About how many bytes a batch has."""
        sizes = self._sizes
        records = {each: max(0, offset - begin.get(each, offset)) for each, offset in ends.items()}
        return round(sum(count * sizes.get(each, 0.0) for each, count in records.items()))
