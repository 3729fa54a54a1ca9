"""Committed offsets of groups: list, set and delete them, and compute the lag."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial

from barnabas.client.admin.base import UNKNOWN_TOPIC_ATTEMPTS, Call, group_by_topic, outcome_of
from barnabas.client.admin.records import RecordAdmin
from barnabas.client.admin.types import AdminError, OffsetSpec
from barnabas.client.cluster import GROUP
from barnabas.client.errors import ErrorCode, KafkaError, raise_for
from barnabas.client.types import OffsetAndMetadata, TopicPartition
from barnabas.net.broker_connection import BrokerConnection
from barnabas.wire.messages import offset_commit, offset_delete, offset_fetch

# Later versions identify topics by id, but groups may have offsets of topics that no longer exist.
LAST_VERSION_WITH_NAMES = 9

_GONE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

Offsets = dict[TopicPartition, OffsetAndMetadata]
_Outcomes = dict[TopicPartition, KafkaError | None]


class OffsetAdmin(RecordAdmin):
    def list_consumer_group_offsets(
        self,
        group: str,
        partitions: Collection[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> Offsets:
        """The committed offsets of a group, for all partitions or the given ones. Partitions without one are
        left out: admin.list_consumer_group_offsets("billing")[TopicPartition("orders", 0)].offset"""

        async def work(call: Call) -> Offsets:
            return await self._committed(call, group, partitions, require_stable)

        return self._run(timeout, work)

    def alter_consumer_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        timeout: float | None = None,
    ) -> None:
        """Set the offsets of a group that has no members.

        admin.alter_consumer_group_offsets("billing", {TopicPartition("orders", 0): 42})"""

        async def ask(left: list[TopicPartition], connection: BrokerConnection) -> _Outcomes:
            request = offset_commit.OffsetCommitRequest(group_id=group, topics=_commit_topics(left, offsets))
            response = await connection.send(
                offset_commit.API_KEY, request, version_max=LAST_VERSION_WITH_NAMES
            )
            return _outcomes(response.topics)

        async def work(call: Call) -> None:
            await self._retry_items(
                call,
                offsets,
                lambda left: self._of_group(group, partial(ask, left)),
                UNKNOWN_TOPIC_ATTEMPTS,
            )

        self._run(timeout, work)

    def delete_consumer_group_offsets(
        self, group: str, partitions: Collection[TopicPartition], *, timeout: float | None = None
    ) -> None:
        """Delete the committed offsets of partitions that no member of the group reads."""

        async def ask(left: list[TopicPartition], connection: BrokerConnection) -> _Outcomes:
            topics = [
                offset_delete.OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[
                        offset_delete.OffsetDeleteRequestPartition(partition_index=number)
                        for number in numbers
                    ],
                )
                for topic, numbers in group_by_topic(left).items()
            ]
            request = offset_delete.OffsetDeleteRequest(group_id=group, topics=topics)
            response = await connection.send(offset_delete.API_KEY, request)
            raise_for(response.error_code)
            return _outcomes(response.topics)

        async def work(call: Call) -> None:
            await self._retry_items(call, partitions, lambda left: self._of_group(group, partial(ask, left)))

        self._run(timeout, work)

    def lag_of(self, group: str, *, timeout: float | None = None) -> dict[TopicPartition, int]:
        """The lag of a group: for each partition, how far the committed offset is behind the end. Partitions
        that no longer exist are left out.

        sum(admin.lag_of("billing").values())"""

        async def work(call: Call) -> dict[TopicPartition, int]:
            committed = await self._committed(call, group, None, False)
            try:
                ends = await self._list_offsets(call, dict.fromkeys(committed, OffsetSpec.LATEST))
            except AdminError as error:
                if any(each.code is not _GONE for each in error.errors.values()):
                    raise
                ends = error.results
            return {
                partition: max(0, end.offset - committed[partition].offset) for partition, end in ends.items()
            }

        return self._run(timeout, work)

    async def _committed(
        self, call: Call, group: str, partitions: Collection[TopicPartition] | None, require_stable: bool
    ) -> Offsets:
        topics = None if partitions is None else _fetch_topics(partitions)

        async def ask(connection: BrokerConnection) -> Offsets:
            request = offset_fetch.OffsetFetchRequest(
                groups=[offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=topics)],
                require_stable=require_stable,
            )
            response = await connection.send(
                offset_fetch.API_KEY, request, version_max=LAST_VERSION_WITH_NAMES
            )
            answer = response.groups[0] if response.groups else offset_fetch.OffsetFetchResponseGroup()
            raise_for(answer.error_code)
            return _positions(answer)

        async def attempt() -> Offsets:
            outcome = await self._ask_coordinator(GROUP, group, ask)
            if isinstance(outcome, KafkaError):
                raise outcome
            return outcome

        return await self._retry(call, attempt)

    async def _of_group(
        self, group: str, ask: Callable[[BrokerConnection], Awaitable[_Outcomes]]
    ) -> _Outcomes:
        outcome = await self._ask_coordinator(GROUP, group, ask)
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome


def _fetch_topics(partitions: Collection[TopicPartition]) -> list[offset_fetch.OffsetFetchRequestTopics]:
    return [
        offset_fetch.OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
        for topic, numbers in group_by_topic(partitions).items()
    ]


def _positions(group: offset_fetch.OffsetFetchResponseGroup) -> Offsets:
    positions: Offsets = {}
    for topic in group.topics:
        for partition in topic.partitions:
            raise_for(partition.error_code)
            # -1 means that no offset is committed.
            if partition.committed_offset >= 0:
                positions[TopicPartition(topic.name, partition.partition_index)] = OffsetAndMetadata(
                    partition.committed_offset, partition.metadata or "", partition.committed_leader_epoch
                )
    return positions


def _commit_topics(
    partitions: list[TopicPartition], offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
) -> list[offset_commit.OffsetCommitRequestTopic]:
    topics: dict[str, list[offset_commit.OffsetCommitRequestPartition]] = {}
    for partition in partitions:
        given = offsets[partition]
        position = OffsetAndMetadata(given) if isinstance(given, int) else given
        topics.setdefault(partition.topic, []).append(
            offset_commit.OffsetCommitRequestPartition(
                partition_index=partition.partition,
                committed_offset=position.offset,
                committed_leader_epoch=position.leader_epoch,
                committed_metadata=position.metadata,
            )
        )
    return [
        offset_commit.OffsetCommitRequestTopic(name=topic, partitions=committed)
        for topic, committed in topics.items()
    ]


def _outcomes(
    topics: list[offset_commit.OffsetCommitResponseTopic] | list[offset_delete.OffsetDeleteResponseTopic],
) -> _Outcomes:
    return {
        TopicPartition(topic.name, answer.partition_index): outcome_of(answer.error_code, None, None)
        for topic in topics
        for answer in topic.partitions
    }
