"""Questions about offsets: by time, by leader epoch, as committed by the group. Runs on the I/O thread.

Every question is tried again, after a pause and with fresh metadata, until its time is over."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from barnabas.client.consumer.network import Network
from barnabas.client.errors import KafkaError, KafkaTimeoutError, error_from
from barnabas.client.metadata import ClusterMetadata
from barnabas.client.types import OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo, TopicPartition
from barnabas.ids import ZERO_UUID
from barnabas.wire.messages import list_offsets, offset_fetch, offset_for_leader_epoch
from barnabas.wire.messages.metadata import MetadataResponse

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
# The last versions that name topics; the newer ones know their ids only.
OFFSET_FETCH_BY_NAME = 9

_T = TypeVar("_T")


class EpochEnd(NamedTuple):
    leader_epoch: int
    end_offset: int


class Identity(NamedTuple):
    """Who speaks to the group: generation or member epoch, member id, static name."""

    epoch: int = -1
    member_id: str = ""
    instance_id: str | None = None


async def persist(network: Network, ask: Callable[[], Awaitable[_T]], within: float) -> _T:
    """Ask until there is an answer; what cannot be helped by waiting is raised."""
    try:
        async with asyncio.timeout(within):
            while True:
                try:
                    return await ask()
                except KafkaError as error:
                    if not error.retriable:
                        raise
                    network.coordinator_failed(error.code)
                await network.recover()
    except TimeoutError as late:
        if isinstance(late, KafkaError):
            raise
        raise KafkaTimeoutError(f"there was no answer within {within:g} s") from None


def _by_leader(network: Network, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    found: dict[int, list[TopicPartition]] = defaultdict(list)
    for each in partitions:
        found[network.leader(each)].append(each)
    return found


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        found[topic].append(partition)
    return found


async def offsets_by_time(
    network: Network, times: Mapping[TopicPartition, int], isolation: int
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """The first offset at or after each timestamp (-1: the end, -2: the start), where there is one."""
    found: dict[TopicPartition, OffsetAndTimestamp] = {}
    for node, partitions in _by_leader(network, times).items():
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[
                list_offsets.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        list_offsets.ListOffsetsPartition(
                            partition_index=index, timestamp=times[TopicPartition(topic, index)]
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in _by_topic(partitions).items()
            ],
        )
        answer = await network.ask(node, list_offsets.API_KEY, request)
        for topic in answer.topics:
            for each in topic.partitions:
                _raise_for(each.error_code)
                if each.offset >= 0:
                    key = TopicPartition(topic.name, each.partition_index)
                    found[key] = OffsetAndTimestamp(each.offset, each.timestamp, each.leader_epoch)
    return found


def partitions_of_all(answer: MetadataResponse) -> dict[str, list[PartitionInfo]]:
    """The topics of an answer that can be used, with their partitions."""
    topics = ClusterMetadata().updated(answer, keep_others=False).topics
    return {name: list(topic.partitions) for name, topic in topics.items() if topic.partitions}


async def epoch_ends(
    network: Network, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, EpochEnd]:
    """Where the leaders' logs end for each epoch: behind our position, unless the log was cut."""
    found: dict[TopicPartition, EpochEnd] = {}
    for node, partitions in _by_leader(network, epochs).items():
        request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        offset_for_leader_epoch.OffsetForLeaderPartition(
                            partition=index, leader_epoch=epochs[TopicPartition(topic, index)]
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in _by_topic(partitions).items()
            ],
        )
        answer = await network.ask(node, offset_for_leader_epoch.API_KEY, request)
        for topic in answer.topics:
            for each in topic.partitions:
                _raise_for(each.error_code)
                key = TopicPartition(topic.topic, each.partition)
                found[key] = EpochEnd(each.leader_epoch, each.end_offset)
    return found


async def committed_offsets(
    network: Network, partitions: Iterable[TopicPartition], identity: Identity
) -> dict[TopicPartition, OffsetAndMetadata]:
    """What the group has committed; absent where it has nothing."""
    topics = _by_topic(partitions)
    group = offset_fetch.OffsetFetchRequestGroup(
        group_id=network.group_id,
        member_id=identity.member_id or None,
        member_epoch=identity.epoch if identity.member_id else -1,
        topics=[
            offset_fetch.OffsetFetchRequestTopics(topic_id=ZERO_UUID, name=topic, partition_indexes=indexes)
            for topic, indexes in topics.items()
        ],
    )
    request = offset_fetch.OffsetFetchRequest(groups=[group], require_stable=True)
    answer = await network.ask_coordinator(offset_fetch.API_KEY, request, version_max=OFFSET_FETCH_BY_NAME)
    return _committed(answer)


def _committed(answer: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    found = {}
    for group in answer.groups:
        _raise_for(group.error_code)
        for topic in group.topics:
            for each in topic.partitions:
                _raise_for(each.error_code)
                if each.committed_offset >= 0:
                    found[TopicPartition(topic.name, each.partition_index)] = OffsetAndMetadata(
                        each.committed_offset, each.metadata or "", each.committed_leader_epoch
                    )
    return found


def _raise_for(number: int) -> None:
    if number:
        raise error_from(number)
