"""Records: delete those before an offset, look up offsets."""

from collections.abc import Mapping

from barnabas.client.admin.base import UNKNOWN_TOPIC_ATTEMPTS, AdminBase, Call, group_by_topic, outcome_of
from barnabas.client.admin.types import ListedOffset, OffsetSpec
from barnabas.client.errors import KafkaError, UnsupportedVersionError
from barnabas.client.types import TopicPartition
from barnabas.net.broker_connection import BrokerConnection
from barnabas.wire.messages import delete_records, list_offsets

ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}
# The first version of ListOffsets that supports each special offset.
_VERSION_NEEDED = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}


class RecordAdmin(AdminBase):
    def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset (-1: all). Returns the new first offset of each partition.

        admin.delete_records({TopicPartition("orders", 0): 100})"""

        async def ask(
            call: Call, connection: BrokerConnection, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, int | KafkaError]:
            topics = [
                delete_records.DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        delete_records.DeleteRecordsPartition(
                            partition_index=number, offset=before[TopicPartition(topic, number)]
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in group_by_topic(partitions).items()
            ]
            request = delete_records.DeleteRecordsRequest(topics=topics, timeout_ms=call.left_ms)
            response = await connection.send(delete_records.API_KEY, request)
            return {
                TopicPartition(topic.name, answer.partition_index): outcome_of(
                    answer.error_code, None, answer.low_watermark
                )
                for topic in response.topics
                for answer in topic.partitions
            }

        async def work(call: Call) -> dict[TopicPartition, int]:
            return await self._retry_items(
                call,
                before,
                lambda left: self._by_leader(left, lambda *where: ask(call, *where)),
                UNKNOWN_TOPIC_ATTEMPTS,
            )

        return self._run(timeout, work)

    def list_offsets(
        self,
        specs: Mapping[TopicPartition, int],
        *,
        isolation_level: str = "read_uncommitted",
        timeout: float | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """Offsets of partitions: the first, the last, or the one for a timestamp.

        admin.list_offsets({TopicPartition("orders", 0): OffsetSpec.LATEST})"""
        isolation = ISOLATION_LEVELS[isolation_level]

        async def work(call: Call) -> dict[TopicPartition, ListedOffset]:
            return await self._list_offsets(call, specs, isolation)

        return self._run(timeout, work)

    async def _list_offsets(
        self, call: Call, specs: Mapping[TopicPartition, int], isolation: int = 0
    ) -> dict[TopicPartition, ListedOffset]:
        async def ask(
            connection: BrokerConnection, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, ListedOffset | KafkaError]:
            _check_version(connection, {specs[partition] for partition in partitions})
            request = list_offsets.ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation,
                topics=_offset_topics(partitions, specs),
                timeout_ms=call.left_ms,
            )
            response = await connection.send(list_offsets.API_KEY, request)
            return _offsets(response)

        return await self._retry_items(
            call, specs, lambda left: self._by_leader(left, ask), UNKNOWN_TOPIC_ATTEMPTS
        )


def _check_version(connection: BrokerConnection, specs: set[int]) -> None:
    needed = max((version for spec, version in _VERSION_NEEDED.items() if spec in specs), default=0)
    if not connection.supports(list_offsets.API_KEY, needed):
        raise UnsupportedVersionError(
            f"the broker is too old: it does not support version {needed} of ListOffsets"
        )


def _offset_topics(
    partitions: list[TopicPartition], specs: Mapping[TopicPartition, int]
) -> list[list_offsets.ListOffsetsTopic]:
    return [
        list_offsets.ListOffsetsTopic(
            name=topic,
            partitions=[
                list_offsets.ListOffsetsPartition(
                    partition_index=number, timestamp=int(specs[TopicPartition(topic, number)])
                )
                for number in numbers
            ],
        )
        for topic, numbers in group_by_topic(partitions).items()
    ]


def _offsets(response: list_offsets.ListOffsetsResponse) -> dict[TopicPartition, ListedOffset | KafkaError]:
    return {
        TopicPartition(topic.name, answer.partition_index): outcome_of(
            answer.error_code, None, ListedOffset(answer.offset, answer.timestamp, answer.leader_epoch)
        )
        for topic in response.topics
        for answer in topic.partitions
    }
