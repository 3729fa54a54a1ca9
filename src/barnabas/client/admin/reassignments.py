"""Partitions that are moving between brokers."""

from collections.abc import Collection

from barnabas.client.admin.base import AdminBase, Call, group_by_topic
from barnabas.client.admin.types import PartitionReassignment
from barnabas.client.errors import raise_for
from barnabas.client.types import TopicPartition
from barnabas.wire.messages import list_partition_reassignments as wire


class ReassignmentAdmin(AdminBase):
    def list_partition_reassignments(
        self, partitions: Collection[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Those of the given partitions (None: all) that are moving between brokers."""
        topics = None
        if partitions is not None:
            topics = [
                wire.ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in group_by_topic(partitions).items()
            ]

        async def ask(call: Call) -> wire.ListPartitionReassignmentsResponse:
            connection = await self._cluster.controller()
            request = wire.ListPartitionReassignmentsRequest(timeout_ms=call.left_ms, topics=topics)
            response: wire.ListPartitionReassignmentsResponse = await connection.send(wire.API_KEY, request)
            raise_for(response.error_code, response.error_message)
            return response

        async def work(call: Call) -> dict[TopicPartition, PartitionReassignment]:
            return _moving(await self._retry(call, lambda: ask(call)))

        return self._run(timeout, work)


def _moving(
    response: wire.ListPartitionReassignmentsResponse,
) -> dict[TopicPartition, PartitionReassignment]:
    return {
        TopicPartition(topic.name, part.partition_index): PartitionReassignment(
            tuple(part.replicas), tuple(part.adding_replicas), tuple(part.removing_replicas)
        )
        for topic in response.topics
        for part in topic.partitions
    }
