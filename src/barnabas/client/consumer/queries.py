"""The methods of a consumer that query brokers about offsets and topics."""

import time
from collections.abc import Iterable, Mapping

from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.lookups import committed_offsets, offsets_by_time, partitions_of_all
from barnabas.client.consumer.state import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.client.generic import K, V
from barnabas.client.types import OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo, TopicPartition


class OffsetQueries(ConsumerCore[K, V]):
    """Part of Consumer. Each method waits for an answer, default.api.timeout.ms unless `timeout` is given."""

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset of the next record that poll returns."""
        with self._access:
            state = self._state(partition)
            deadline = time.monotonic() + self._seconds(timeout)
            self._engine.assignments.wake()
            while state.offset is None:
                self._engine.assignments.raise_error()
                if not self._engine.wait(
                    lambda: state.offset is not None or self._engine.assignments.errors, deadline
                ):
                    raise self._position_unknown(partition)
            return state.offset

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The offset that the group has committed for each partition; None if it has committed none."""
        with self._access:
            requested = list(partitions)
            network = self._engine.network
            identity = self._engine.identity()
            offsets = self._engine.ask(
                lambda: committed_offsets(network, requested, identity), self._seconds(timeout)
            )
            return {each: offsets.get(each) for each in requested}

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each timestamp (ms); None if there is none."""
        if any(timestamp < 0 for timestamp in times.values()):
            raise ValueError("a timestamp must not be negative")
        offsets = self._offsets(times, timeout)
        return {each: offsets.get(each) for each in times}

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition that can still be read."""
        offsets = self._offsets(dict.fromkeys(partitions, EARLIEST_TIMESTAMP), timeout)
        return {each: position.offset for each, position in offsets.items()}

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record that a consumer with this isolation.level can read."""
        offsets = self._offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP), timeout)
        return {each: position.offset for each, position in offsets.items()}

    def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """The partitions of a topic with their leaders."""
        with self._access:
            cluster = self._engine.cluster
            return list(self._engine.ask(lambda: cluster.topic(topic), self._seconds(timeout)).partitions)

    def list_topics(self, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics that this client may see, with their partitions."""
        with self._access:
            cluster = self._engine.cluster
            answer = self._engine.ask(lambda: cluster.fetch_metadata(None), self._seconds(timeout))
            return partitions_of_all(answer)

    def _offsets(
        self, times: Mapping[TopicPartition, int], timeout: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        with self._access:
            network, isolation = self._engine.network, self._engine.positions.isolation
            return self._engine.ask(
                lambda: offsets_by_time(network, times, isolation), self._seconds(timeout)
            )

    def _seconds(self, timeout: float | None) -> float:
        return self._api_seconds if timeout is None else timeout
