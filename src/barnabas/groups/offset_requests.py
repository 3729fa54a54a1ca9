"""Offset requests of one group: the records they write and their answers, partition by partition.

The group has already decided that the caller may send the request."""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.coordination.step import JournalRecord
from barnabas.errors import ErrorCode
from barnabas.groups.offsets import NO_EXPIRY, CommittedOffset, OffsetStore, offset_record
from barnabas.groups.settings import TopicsView
from barnabas.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

# On the wire: there is no committed offset.
_NO_OFFSET = -1
_DEFAULT_RETENTION = -1


class Commits:
    """Collects the records of the offsets that one request commits."""

    def __init__(self, group_id: str, metadata_max: int, now_ms: int, expire_ms: int = NO_EXPIRY) -> None:
        self.records: list[JournalRecord] = []
        self._group_id = group_id
        self._metadata_max = metadata_max
        self._now_ms = now_ms
        self._expire_ms = expire_ms

    def add(
        self,
        topic: str,
        topic_id: Uuid,
        requested: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    ) -> ErrorCode:
        metadata = requested.committed_metadata or ""
        if len(metadata) > self._metadata_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        committed = CommittedOffset(
            requested.committed_offset,
            requested.committed_leader_epoch,
            metadata,
            self._now_ms,
            self._expire_ms,
            topic_id,
        )
        partition = TopicPartition(topic, requested.partition_index)
        self.records.append(offset_record(self._group_id, partition, committed))
        return ErrorCode.NONE


class Committed(NamedTuple):
    response: OffsetCommitResponse
    records: list[JournalRecord]


def commit(request: OffsetCommitRequest, topics: TopicsView, metadata_max: int, now_ms: int) -> Committed:
    # Clients up to version 4 may choose how long their offsets are kept.
    has_own_retention = request.retention_time_ms != _DEFAULT_RETENTION
    expire_ms = now_ms + request.retention_time_ms if has_own_retention else NO_EXPIRY
    commits = Commits(request.group_id, metadata_max, now_ms, expire_ms)
    response = OffsetCommitResponse()
    for topic in request.topics:
        topic_id = topic.topic_id if topic.topic_id != ZERO_UUID else _id_of(topics, topic.name)
        answers = [
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index,
                error_code=commits.add(topic.name, topic_id, partition),
            )
            for partition in topic.partitions
        ]
        answer = OffsetCommitResponseTopic(topic_id=topic.topic_id, name=topic.name, partitions=answers)
        response.topics.append(answer)
    return Committed(response, commits.records)


def refused_commit(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The whole request fails. The answer has no error code for that, so every partition gets it."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic_id=topic.topic_id,
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


class CommittedInTransaction(NamedTuple):
    response: TxnOffsetCommitResponse
    records: list[JournalRecord]


def commit_in_transaction(
    request: TxnOffsetCommitRequest, topics: TopicsView, metadata_max: int, now_ms: int
) -> CommittedInTransaction:
    commits = Commits(request.group_id, metadata_max, now_ms)
    response = TxnOffsetCommitResponse()
    for topic in request.topics:
        topic_id = _id_of(topics, topic.name)
        answers = [
            TxnOffsetCommitResponsePartition(
                partition_index=partition.partition_index,
                error_code=commits.add(topic.name, topic_id, partition),
            )
            for partition in topic.partitions
        ]
        response.topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers))
    return CommittedInTransaction(response, commits.records)


def refused_commit_in_transaction(
    request: TxnOffsetCommitRequest, error: ErrorCode
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def fetch(
    request: OffsetFetchRequestGroup, store: OffsetStore, topics: TopicsView, require_stable: bool
) -> OffsetFetchResponseGroup:
    group_id = request.group_id
    requested = _everything(group_id, store, topics) if request.topics is None else request.topics
    answers = []
    for topic in requested:
        partitions = [
            _fetched(store, group_id, TopicPartition(topic.name, index), topic.topic_id, require_stable)
            for index in topic.partition_indexes
        ]
        answer = OffsetFetchResponseTopics(topic_id=topic.topic_id, name=topic.name, partitions=partitions)
        answers.append(answer)
    return OffsetFetchResponseGroup(group_id=group_id, topics=answers)


def _everything(group_id: str, store: OffsetStore, topics: TopicsView) -> list[OffsetFetchRequestTopics]:
    """Everything that the group has committed, as a request for it."""
    topics_by_name: dict[str, OffsetFetchRequestTopics] = {}
    for partition, _ in store.of_group(group_id):
        name = partition.topic
        if name not in topics_by_name:
            topics_by_name[name] = OffsetFetchRequestTopics(name=name, topic_id=_id_of(topics, name))
        topics_by_name[name].partition_indexes.append(partition.partition)
    return list(topics_by_name.values())


def _fetched(
    store: OffsetStore, group_id: str, partition: TopicPartition, topic_id: Uuid, require_stable: bool
) -> OffsetFetchResponsePartitions:
    answer = OffsetFetchResponsePartitions(partition_index=partition.partition, committed_offset=_NO_OFFSET)
    committed = store.get(group_id, partition)
    if require_stable and store.is_pending(group_id, partition):
        answer.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
    elif committed is not None and committed.is_of_topic(topic_id):
        answer.committed_offset = committed.offset
        answer.committed_leader_epoch = committed.leader_epoch
        answer.metadata = committed.metadata
    return answer


class Deleted(NamedTuple):
    response: OffsetDeleteResponse
    records: list[JournalRecord]


def delete(
    request: OffsetDeleteRequest, store: OffsetStore, is_subscribed_to: Callable[[str], bool]
) -> Deleted:
    records: list[JournalRecord] = []
    response = OffsetDeleteResponse()
    for topic in request.topics:
        is_in_use = is_subscribed_to(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_in_use else ErrorCode.NONE
        answer = OffsetDeleteResponseTopic(name=topic.name)
        for partition in topic.partitions:
            index = partition.partition_index
            answer.partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error))
            if not is_in_use:
                records += store.removal(request.group_id, TopicPartition(topic.name, index))
        response.topics.append(answer)
    return Deleted(response, records)


def _id_of(topics: TopicsView, name: str) -> Uuid:
    return topics.topic_id(name) or ZERO_UUID
