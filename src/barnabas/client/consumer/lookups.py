"""Lookups of offsets: by time, by leader epoch, and as committed by the group. Runs on the I/O thread.

`with_retries` repeats a lookup, after a pause and with fresh metadata, until its time is over."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from barnabas.client.consumer.network import Network
from barnabas.client.errors import KafkaError, KafkaTimeoutError, error_from
from barnabas.client.metadata import ClusterMetadata
from barnabas.client.troubles import cause_of
from barnabas.client.types import OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo, TopicPartition
from barnabas.ids import ZERO_UUID
from barnabas.wire.messages import list_offsets, offset_fetch, offset_for_leader_epoch
from barnabas.wire.messages.metadata import MetadataResponse

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
# The last version that identifies topics by name; newer ones use topic ids.
OFFSET_FETCH_BY_NAME = 9

_T = TypeVar("_T")


class EpochEnd(NamedTuple):
    leader_epoch: int
    end_offset: int


class Identity(NamedTuple):
    """A member of a group: its generation or member epoch, its member id, its group.instance.id."""

    epoch: int = -1
    member_id: str = ""
    instance_id: str | None = None


async def with_retries(network: Network, ask: Callable[[], Awaitable[_T]], within: float) -> _T:
    """Run `ask` until it succeeds; errors that are not retriable are raised."""
    cause = ""
    try:
        async with asyncio.timeout(within):
            while True:
                try:
                    return await ask()
                except KafkaError as error:
                    if not error.retriable:
                        raise
                    network.coordinator_failed(error.code)
                    cause = f": {cause_of(error)}"
                await network.recover()
    except TimeoutError as late:
        if isinstance(late, KafkaError):
            raise
        raise KafkaTimeoutError(f"got no answer within {within:g} s{network.explain() or cause}") from None


def _by_leader(network: Network, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for each in partitions:
        by_leader[network.leader(each)].append(each)
    return by_leader


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        by_topic[topic].append(partition)
    return by_topic


async def offsets_by_time(
    network: Network, times: Mapping[TopicPartition, int], isolation: int
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """The first offset at or after each timestamp (-1: the end, -2: the start), if there is one."""
    offsets: dict[TopicPartition, OffsetAndTimestamp] = {}
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
                    offsets[key] = OffsetAndTimestamp(each.offset, each.timestamp, each.leader_epoch)
    return offsets


def partitions_of_all(answer: MetadataResponse) -> dict[str, list[PartitionInfo]]:
    """The usable topics of an answer, with their partitions."""
    topics = ClusterMetadata().updated(answer).topics
    return {name: list(topic.partitions) for name, topic in topics.items() if topic.partitions}


async def epoch_ends(
    network: Network, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, EpochEnd]:
    """The end offset of each epoch in the leader's log: after our position, unless the log was truncated."""
    ends: dict[TopicPartition, EpochEnd] = {}
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
                ends[key] = EpochEnd(each.leader_epoch, each.end_offset)
    return ends


async def committed_offsets(
    network: Network, partitions: Iterable[TopicPartition], identity: Identity
) -> dict[TopicPartition, OffsetAndMetadata]:
    """The offsets that the group has committed; partitions without one are left out."""
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
    offsets = {}
    for group in answer.groups:
        _raise_for(group.error_code)
        for topic in group.topics:
            for each in topic.partitions:
                _raise_for(each.error_code)
                if each.committed_offset >= 0:
                    offsets[TopicPartition(topic.name, each.partition_index)] = OffsetAndMetadata(
                        each.committed_offset, each.metadata or "", each.committed_leader_epoch
                    )
    return offsets


def _raise_for(number: int) -> None:
    if number:
        raise error_from(number)
