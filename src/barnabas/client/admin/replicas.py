"""Reads from certain replicas of partitions, to compare them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.client.admin.base import AdminBase, Call, group_by_topic, outcome_of
from barnabas.client.admin.records import ISOLATION_LEVELS
from barnabas.client.errors import KafkaError, raise_for
from barnabas.client.types import TopicPartition
from barnabas.config.definition import INT_MAX
from barnabas.wire.messages import fetch

# The last version of Fetch that identifies topics by name.
FETCH_BY_NAME = 12
PARTITION_BYTES_MAX = 1 << 20


class ReplicaData(NamedTuple):
    """Batches from the requested offset on, and what the replica knows of its log. `aborted` has the producer
    id and first offset of aborted transactions, if the read was read_committed."""

    high_watermark: int
    records: bytes
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: tuple[tuple[int, int], ...] = ()


class ReplicaAdmin(AdminBase):
    def read_replicas(
        self,
        broker_id: int,
        offsets: Mapping[TopicPartition, int],
        *,
        bytes_max: int = PARTITION_BYTES_MAX,
        isolation_level: str = "read_uncommitted",
        timeout: float | None = None,
    ) -> dict[TopicPartition, ReplicaData | KafkaError]:
        """What this broker has of each partition from the offset on, whether it leads it or not. With
        read_committed it ends at the last stable offset; aborted records are not left out."""
        isolation = ISOLATION_LEVELS[isolation_level]
        topics = [
            fetch.FetchTopic(
                topic=topic,
                partitions=[
                    fetch.FetchPartition(
                        partition=number,
                        fetch_offset=offsets[TopicPartition(topic, number)],
                        partition_max_bytes=bytes_max,
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in group_by_topic(offsets).items()
        ]

        async def ask() -> dict[TopicPartition, ReplicaData | KafkaError]:
            connection = await self._cluster.connection(broker_id)
            request = fetch.FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=min(bytes_max * max(1, len(offsets)), INT_MAX),
                isolation_level=isolation,
                topics=topics,
            )
            response = await connection.send(fetch.API_KEY, request, version_max=FETCH_BY_NAME)
            raise_for(response.error_code)
            return {
                TopicPartition(topic.topic, data.partition_index): outcome_of(
                    data.error_code, None, _data(data)
                )
                for topic in response.responses
                for data in topic.partitions
            }

        async def work(call: Call) -> dict[TopicPartition, ReplicaData | KafkaError]:
            return await self._retry(call, ask)

        return self._run(timeout, work)


def _data(data: Any) -> ReplicaData:
    return ReplicaData(
        data.high_watermark,
        bytes(data.records or b""),
        data.last_stable_offset,
        data.log_start_offset,
        tuple((each.producer_id, each.first_offset) for each in data.aborted_transactions or ()),
    )
