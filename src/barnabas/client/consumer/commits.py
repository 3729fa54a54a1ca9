"""Commits offsets to the group. Runs on the I/O thread."""

from collections.abc import Callable, Mapping

from barnabas.client.consumer.lookups import Identity
from barnabas.client.consumer.network import Network
from barnabas.client.errors import (
    CommitFailedError,
    ErrorCode,
    KafkaError,
    RebalanceInProgressError,
    error_from,
)
from barnabas.client.types import OffsetAndMetadata, TopicPartition
from barnabas.wire.messages import offset_commit

# The last version that identifies topics by name.
OFFSET_COMMIT_BY_NAME = 9
_EXPELLED = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
)
REBALANCING = (
    "Offsets cannot be committed during a rebalance. Call poll() to complete it, then commit the offsets of"
    " the partitions that this consumer still has."
)
Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class Commits:
    def __init__(self, network: Network, identity: Callable[[], Identity]) -> None:
        self._network = network
        self._identity = identity

    async def commit(self, offsets: Offsets) -> None:
        """Commit once, without retries. CommitFailedError means that a retry cannot help."""
        identity = self._identity()
        topics: dict[str, offset_commit.OffsetCommitRequestTopic] = {}
        for (topic, partition), given in offsets.items():
            entry = topics.setdefault(topic, offset_commit.OffsetCommitRequestTopic(name=topic))
            entry.partitions.append(
                offset_commit.OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=given.offset,
                    committed_leader_epoch=given.leader_epoch,
                    committed_metadata=given.metadata,
                )
            )
        request = offset_commit.OffsetCommitRequest(
            group_id=self._network.group_id,
            generation_id_or_member_epoch=identity.epoch,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id,
            topics=list(topics.values()),
        )
        answer: offset_commit.OffsetCommitResponse = await self._network.ask_coordinator(
            offset_commit.API_KEY, request, version_max=OFFSET_COMMIT_BY_NAME
        )
        for each in answer.topics:
            for result in each.partitions:
                self._check(TopicPartition(each.name, result.partition_index), result.error_code)

    def _check(self, partition: TopicPartition, number: int) -> None:
        if not number:
            return
        error = error_from(number)
        self._network.coordinator_failed(error.code)
        if error.code in _EXPELLED:
            raise CommitFailedError(
                f"The offset of {partition} cannot be committed: this consumer is no longer a member of the"
                f" group ({error.code.name}). Poll more often, lower max.poll.records, raise"
                " max.poll.interval.ms, or check whether another consumer uses the same group.instance.id.",
                error.code,
            )
        if error.code is ErrorCode.REBALANCE_IN_PROGRESS:
            raise RebalanceInProgressError(REBALANCING)
        if error.code is ErrorCode.STALE_MEMBER_EPOCH:
            # The answer to the next heartbeat has the new epoch.
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the member's epoch has just changed")
        raise error
