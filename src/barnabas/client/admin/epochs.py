"""The replicas of partitions as they are: where each one ends, and which leaders wrote which offsets."""

from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import NamedTuple

from barnabas.client.admin.base import (
    UNKNOWN_TOPIC_ATTEMPTS,
    AdminBase,
    Call,
    group_by_topic,
    outcome_of,
)
from barnabas.client.admin.types import OffsetSpec
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.types import TopicPartition
from barnabas.net.broker_connection import BrokerConnection
from barnabas.wire.messages import list_offsets
from barnabas.wire.messages import offset_for_leader_epoch as epoch_ends

# The replica id with which any replica answers for itself, as followers and leaders do for Kafka's own tools.
DEBUGGING_REPLICA_ID = -2
EPOCHS_MAX = 20


class EpochStart(NamedTuple):
    """The first offset that a leader with this epoch wrote."""

    epoch: int
    start: int


class EpochHistory(NamedTuple):
    """The newest epochs first; `end` is the end of the leader's log."""

    end: int
    epochs: tuple[EpochStart, ...]


class EpochAdmin(AdminBase):
    def replica_ends(
        self, broker_id: int, partitions: Collection[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int | KafkaError]:
        """The end of the log of each replica on this broker, whether it leads the partition or not."""

        async def ask() -> dict[TopicPartition, int | KafkaError]:
            connection = await self._cluster.connection(broker_id)
            request = list_offsets.ListOffsetsRequest(
                replica_id=DEBUGGING_REPLICA_ID,
                topics=[
                    list_offsets.ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            list_offsets.ListOffsetsPartition(
                                partition_index=number, timestamp=int(OffsetSpec.LATEST)
                            )
                            for number in numbers
                        ],
                    )
                    for topic, numbers in group_by_topic(partitions).items()
                ],
            )
            response = await connection.send(list_offsets.API_KEY, request)
            return {
                TopicPartition(topic.name, answer.partition_index): outcome_of(
                    answer.error_code, None, answer.offset
                )
                for topic in response.topics
                for answer in topic.partitions
            }

        async def work(call: Call) -> dict[TopicPartition, int | KafkaError]:
            return await self._retry(call, ask)

        return self._run(timeout, work)

    def leader_epochs(
        self, partitions: Collection[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, EpochHistory]:
        """The last epochs of each partition that have records, with their first offsets.

        admin.leader_epochs([TopicPartition("orders", 0)])"""

        async def attempt(left: list[TopicPartition]) -> dict[TopicPartition, EpochHistory | KafkaError]:
            metadata = await self._topics_metadata({partition.topic for partition in left})
            current = {each: leader.epoch for each in left if (leader := metadata.leader_of(each))}
            walk = _Walk(current)
            while walk.asking:
                walk.take(await self._by_leader(list(walk.asking), walk.ask))
            return {each: walk.result(each) if each in current else metadata.missing(each) for each in left}

        async def work(call: Call) -> dict[TopicPartition, EpochHistory]:
            return await self._retry_items(call, partitions, attempt, UNKNOWN_TOPIC_ATTEMPTS)

        return self._run(timeout, work)


class _Walk:
    """Asks where epochs end, from the current one down: where an epoch ends, the next one begins."""

    def __init__(self, current: dict[TopicPartition, int]) -> None:
        self.asking = {partition: epoch for partition, epoch in current.items() if epoch >= 0}
        self._found: dict[TopicPartition, list[tuple[int, int]]] = {each: [] for each in current}
        self._errors: dict[TopicPartition, KafkaError] = {}

    async def ask(
        self, connection: BrokerConnection, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, tuple[int, int] | KafkaError]:
        request = epoch_ends.OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                epoch_ends.OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        epoch_ends.OffsetForLeaderPartition(
                            partition=number, leader_epoch=self.asking[TopicPartition(topic, number)]
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in group_by_topic(partitions).items()
            ],
        )
        response = await connection.send(epoch_ends.API_KEY, request)
        return {
            TopicPartition(topic.topic, answer.partition): outcome_of(
                answer.error_code, None, (answer.leader_epoch, answer.end_offset)
            )
            for topic in response.topics
            for answer in topic.partitions
        }

    def take(self, answers: dict[TopicPartition, tuple[int, int] | KafkaError]) -> None:
        asked, self.asking = self.asking, {}
        for partition in asked:
            answer = answers.get(partition, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            if isinstance(answer, KafkaError):
                self._errors[partition] = answer
                continue
            epoch, _ = answer
            found = self._found[partition]
            if epoch >= 0:
                found.append(answer)
            if epoch > 0 and len(found) <= EPOCHS_MAX:
                self.asking[partition] = epoch - 1

    def result(self, partition: TopicPartition) -> EpochHistory | KafkaError:
        if partition in self._errors:
            return self._errors[partition]
        found = self._found[partition]
        if not found:
            return EpochHistory(-1, ())
        return EpochHistory(found[0][1], tuple(_starts(found))[:EPOCHS_MAX])


def _starts(found: list[tuple[int, int]]) -> Iterable[EpochStart]:
    """From (epoch, end) pairs, the newest first. The oldest one is shown from 0 on."""
    for (epoch, _), (_, end_before) in pairwise(found):
        yield EpochStart(epoch, end_before)
    if found and len(found) <= EPOCHS_MAX:
        yield EpochStart(found[-1][0], 0)
