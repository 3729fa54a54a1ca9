"""Topics: create, delete, list, describe, add partitions."""

from collections.abc import Collection, Iterable, Mapping

from barnabas.client.admin.base import AdminBase, Call, outcome_of
from barnabas.client.admin.topic_pages import described_in_pages
from barnabas.client.admin.types import CreatedTopic, NewPartitions, NewTopic, TopicListing
from barnabas.client.errors import ErrorCode, KafkaError, error_from
from barnabas.client.metadata import TopicMetadata
from barnabas.client.types import TopicDescription, TopicPartitionInfo
from barnabas.wire.messages import (
    create_partitions,
    create_topics,
    delete_topics,
    describe_topic_partitions,
)


class TopicAdmin(AdminBase):
    def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> dict[str, CreatedTopic]:
        """Create topics; with `validate_only`, only check whether they could be created.

        admin.create_topics([NewTopic("orders", partitions=3, configs={"retention.ms": "60000"})])"""
        by_name = {topic.name: topic for topic in topics}

        async def work(call: Call) -> dict[str, CreatedTopic]:
            return await self._retry_items(call, by_name, lambda names: attempt(call, names))

        async def attempt(call: Call, names: list[str]) -> dict[str, CreatedTopic | KafkaError]:
            connection = await self._cluster.controller()
            request = create_topics.CreateTopicsRequest(
                topics=[_creatable(by_name[name]) for name in names],
                timeout_ms=call.left_ms,
                validate_only=validate_only,
            )
            response = await connection.send(create_topics.API_KEY, request)
            return {
                result.name: outcome_of(result.error_code, result.error_message, _created(result))
                for result in response.topics
            }

        return self._run(timeout, work)

    def delete_topics(self, topics: Collection[str], *, timeout: float | None = None) -> None:
        """Delete topics with all their records: admin.delete_topics(["orders"])."""

        async def attempt(call: Call, names: list[str]) -> dict[str, KafkaError | None]:
            connection = await self._cluster.controller()
            request = delete_topics.DeleteTopicsRequest(
                topics=[delete_topics.DeleteTopicState(name=name) for name in names],
                timeout_ms=call.left_ms,
            )
            response = await connection.send(delete_topics.API_KEY, request)
            return {
                result.name: outcome_of(result.error_code, result.error_message, None)
                for result in response.responses
            }

        async def work(call: Call) -> None:
            await self._retry_items(call, topics, lambda names: attempt(call, names))

        self._run(timeout, work)

    def create_partitions(
        self,
        new_partitions: Mapping[str, NewPartitions | int],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Add partitions up to a new total: admin.create_partitions({"orders": 6})."""

        async def attempt(call: Call, names: list[str]) -> dict[str, KafkaError | None]:
            connection = await self._cluster.controller()
            request = create_partitions.CreatePartitionsRequest(
                topics=[_partitions_to_add(name, new_partitions[name]) for name in names],
                timeout_ms=call.left_ms,
                validate_only=validate_only,
            )
            response = await connection.send(create_partitions.API_KEY, request)
            return {
                result.name: outcome_of(result.error_code, result.error_message, None)
                for result in response.results
            }

        async def work(call: Call) -> None:
            await self._retry_items(call, new_partitions, lambda names: attempt(call, names))

        self._run(timeout, work)

    def list_topics(
        self, *, include_internal: bool = False, timeout: float | None = None
    ) -> dict[str, TopicListing]:
        """All topics by name; internal ones only with `include_internal`."""

        async def work(call: Call) -> dict[str, TopicListing]:
            metadata = await self._retry(call, lambda: self._topics_metadata(None))
            return {
                topic.name: TopicListing(topic.name, topic.id, topic.is_internal)
                for topic in metadata.topics.values()
                if include_internal or not topic.is_internal
            }

        return self._run(timeout, work)

    def describe_topics(
        self,
        topics: Collection[str],
        *,
        partition_size_limit_per_response: int = 2000,
        timeout: float | None = None,
    ) -> dict[str, TopicDescription]:
        """Partitions, leaders and replicas, requested in pages of that many partitions if the broker can.

        admin.describe_topics(["orders"])["orders"].partitions[0].leader"""

        async def attempt(names: list[str]) -> dict[str, TopicDescription | KafkaError]:
            connection = await self._cluster.any()
            if connection.supports(describe_topic_partitions.API_KEY):
                await self._cluster.refresh()
                nodes = self._cluster.metadata.nodes
                return await described_in_pages(connection, names, partition_size_limit_per_response, nodes)
            metadata = await self._topics_metadata(names)
            return {name: _described(metadata.topics.get(name)) for name in names}

        async def work(call: Call) -> dict[str, TopicDescription]:
            return await self._retry_items(call, topics, attempt)

        return self._run(timeout, work)


def _creatable(topic: NewTopic) -> create_topics.CreatableTopic:
    return create_topics.CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.assignments else topic.partitions,
        replication_factor=-1 if topic.assignments else topic.replication_factor,
        assignments=[
            create_topics.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in topic.assignments.items()
        ],
        configs=[
            create_topics.CreatableTopicConfig(name=name, value=value)
            for name, value in topic.configs.items()
        ],
    )


def _created(result: create_topics.CreatableTopicResult) -> CreatedTopic:
    configs = {config.name: config.value for config in result.configs or ()}
    return CreatedTopic(
        result.name, result.topic_id, result.num_partitions, result.replication_factor, configs
    )


def _partitions_to_add(name: str, new: NewPartitions | int) -> create_partitions.CreatePartitionsTopic:
    total, assignments = (new, None) if isinstance(new, int) else new
    return create_partitions.CreatePartitionsTopic(
        name=name,
        count=total,
        assignments=None
        if assignments is None
        else [create_partitions.CreatePartitionsAssignment(broker_ids=list(ids)) for ids in assignments],
    )


def _described(topic: TopicMetadata | None) -> TopicDescription | KafkaError:
    if topic is None:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.error is not ErrorCode.NONE:
        return error_from(topic.error)
    partitions = tuple(
        TopicPartitionInfo(
            info.partition, info.leader, info.leader_epoch, info.replicas, info.in_sync_replicas
        )
        for info in topic.partitions
    )
    return TopicDescription(topic.name, partitions, topic.id, topic.is_internal)
