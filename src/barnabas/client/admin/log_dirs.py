"""The log directories of brokers: their partitions and sizes."""

from collections.abc import Collection

from barnabas.client.admin.base import AdminBase, Call, group_by_topic
from barnabas.client.admin.types import LogDirDescription, ReplicaInfo
from barnabas.client.errors import KafkaError, error_from, raise_for
from barnabas.client.types import TopicPartition
from barnabas.wire.messages import describe_log_dirs

Directories = dict[str, LogDirDescription]


class LogDirAdmin(AdminBase):
    def describe_log_dirs(
        self,
        brokers: Collection[int] | None = None,
        *,
        partitions: Collection[TopicPartition] | None = None,
        timeout: float | None = None,
    ) -> dict[int, Directories]:
        """Log directories by path, for each broker (None: all), with all partitions or the given ones.

        For example, `admin.describe_log_dirs()[1]["/data"].replicas[TopicPartition("orders", 0)].size`."""
        topics = None if partitions is None else _topics(partitions)

        async def ask(broker: int) -> Directories | KafkaError:
            try:
                connection = await self._cluster.connection(broker)
                request = describe_log_dirs.DescribeLogDirsRequest(topics=topics)
                response = await connection.send(describe_log_dirs.API_KEY, request)
                raise_for(response.error_code)
            except KafkaError as error:
                return error
            return {result.log_dir: _directory(result) for result in response.results}

        async def attempt(requested: list[int]) -> dict[int, Directories | KafkaError]:
            return {broker: await ask(broker) for broker in requested}

        async def work(call: Call) -> dict[int, Directories]:
            requested = await self._retry(call, self._node_ids) if brokers is None else brokers
            return await self._retry_items(call, requested, attempt)

        return self._run(timeout, work)


def _topics(partitions: Collection[TopicPartition]) -> list[describe_log_dirs.DescribableLogDirTopic]:
    return [
        describe_log_dirs.DescribableLogDirTopic(topic=topic, partitions=numbers)
        for topic, numbers in group_by_topic(partitions).items()
    ]


def _directory(result: describe_log_dirs.DescribeLogDirsResult) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, partition.partition_index): ReplicaInfo(
            partition.partition_size, partition.offset_lag, partition.is_future_key
        )
        for topic in result.topics
        for partition in topic.partitions
    }
    error = error_from(result.error_code) if result.error_code else None
    return LogDirDescription(error, replicas, result.total_bytes, result.usable_bytes)
