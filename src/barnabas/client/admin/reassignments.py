"""Partitions that are moving between brokers or log directories, and elections of leaders."""

from collections.abc import Awaitable, Collection, Mapping, Sequence

from barnabas.client.admin.base import AdminBase, Call, group_by_topic, outcome_of
from barnabas.client.admin.types import ElectionType, PartitionReassignment, TopicPartitionReplica
from barnabas.client.errors import ErrorCode, KafkaError, UnsupportedVersionError, error_from, raise_for
from barnabas.client.types import TopicPartition
from barnabas.wire.messages import alter_partition_reassignments as altering
from barnabas.wire.messages import alter_replica_log_dirs, elect_leaders
from barnabas.wire.messages import list_partition_reassignments as listing

# The first version of AlterPartitionReassignments that can refuse a change of the replication factor.
FACTOR_CHANGE_FROM = 1


class ReassignmentAdmin(AdminBase):
    def list_partition_reassignments(
        self, partitions: Collection[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Those of the given partitions (None: all) that are moving between brokers."""
        topics = None
        if partitions is not None:
            topics = [
                listing.ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in group_by_topic(partitions).items()
            ]

        async def ask(call: Call) -> listing.ListPartitionReassignmentsResponse:
            connection = await self._cluster.controller()
            request = listing.ListPartitionReassignmentsRequest(timeout_ms=call.left_ms, topics=topics)
            response: listing.ListPartitionReassignmentsResponse = await connection.send(
                listing.API_KEY, request
            )
            raise_for(response.error_code, response.error_message)
            return response

        async def work(call: Call) -> dict[TopicPartition, PartitionReassignment]:
            return _moving(await self._retry(call, lambda: ask(call)))

        return self._run(timeout, work)

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Start to move each partition to these brokers, the preferred leader first; None cancels its move.

        admin.alter_partition_reassignments({TopicPartition("orders", 0): [2, 3, 4]})"""

        async def attempt(
            call: Call, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, KafkaError | None]:
            connection = await self._cluster.controller()
            if not allow_replication_factor_change and not connection.supports(
                altering.API_KEY, FACTOR_CHANGE_FROM
            ):
                raise UnsupportedVersionError("the broker cannot refuse a change of the replication factor")
            request = altering.AlterPartitionReassignmentsRequest(
                timeout_ms=call.left_ms,
                allow_replication_factor_change=allow_replication_factor_change,
                topics=_reassignable(partitions, reassignments),
            )
            response = await connection.send(altering.API_KEY, request)
            raise_for(response.error_code, response.error_message)
            return {
                TopicPartition(topic.name, part.partition_index): outcome_of(
                    part.error_code, part.error_message, None
                )
                for topic in response.responses
                for part in topic.partitions
            }

        async def work(call: Call) -> None:
            await self._retry_items(call, reassignments, lambda partitions: attempt(call, partitions))

        self._run(timeout, work)

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Collection[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect leaders of the given partitions (None: all that need it). The result has the error of each
        partition; ELECTION_NOT_NEEDED if its leader is right already.

        admin.elect_leaders(ElectionType.PREFERRED)"""
        topics = None
        if partitions is not None:
            topics = [
                elect_leaders.TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in group_by_topic(partitions).items()
            ]

        async def ask(call: Call) -> dict[TopicPartition, KafkaError | None]:
            connection = await self._cluster.controller()
            request = elect_leaders.ElectLeadersRequest(
                election_type=election_type, topic_partitions=topics, timeout_ms=call.left_ms
            )
            response = await connection.send(elect_leaders.API_KEY, request)
            raise_for(response.error_code)
            return {
                TopicPartition(topic.topic, part.partition_id): outcome_of(
                    part.error_code, part.error_message, None
                )
                for topic in response.replica_election_results
                for part in topic.partition_result
            }

        async def work(call: Call) -> dict[TopicPartition, KafkaError | None]:
            return await self._retry(call, lambda: ask(call))

        return self._run(timeout, work)

    def alter_replica_log_dirs(
        self, directories: Mapping[TopicPartitionReplica, str], *, timeout: float | None = None
    ) -> dict[TopicPartitionReplica, KafkaError | None]:
        """Start to move each replica to a log directory of its broker. The result has the error of each
        replica; REPLICA_NOT_AVAILABLE if the broker does not have it yet."""

        async def ask(
            broker: int, replicas: list[TopicPartitionReplica]
        ) -> dict[TopicPartitionReplica, KafkaError | None]:
            connection = await self._cluster.connection(broker)
            request = alter_replica_log_dirs.AlterReplicaLogDirsRequest(
                dirs=_directories(replicas, directories)
            )
            response = await connection.send(alter_replica_log_dirs.API_KEY, request)
            return {
                TopicPartitionReplica(topic.topic_name, part.partition_index, broker): (
                    error_from(part.error_code) if part.error_code else None
                )
                for topic in response.results
                for part in topic.partitions
            }

        async def attempt(
            replicas: list[TopicPartitionReplica],
        ) -> dict[TopicPartitionReplica, KafkaError | None]:
            outcomes: dict[TopicPartitionReplica, KafkaError | None] = {}
            for broker in {replica.broker_id for replica in replicas}:
                own = [replica for replica in replicas if replica.broker_id == broker]
                try:
                    outcomes |= await ask(broker, own)
                except KafkaError as error:
                    outcomes |= dict.fromkeys(own, error)
            return outcomes

        async def work(call: Call) -> dict[TopicPartitionReplica, KafkaError | None]:
            return await self._retry(call, lambda: _retriable_raised(attempt(list(directories))))

        return self._run(timeout, work)


async def _retriable_raised(
    outcomes: Awaitable[dict[TopicPartitionReplica, KafkaError | None]],
) -> dict[TopicPartitionReplica, KafkaError | None]:
    """The outcomes, or the error of a replica whose broker could not be reached, so that all are tried again:
    the request may be repeated."""
    answered = await outcomes
    for error in answered.values():
        if error is not None and error.retriable and error.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
            raise error
    return answered


def _moving(
    response: listing.ListPartitionReassignmentsResponse,
) -> dict[TopicPartition, PartitionReassignment]:
    return {
        TopicPartition(topic.name, part.partition_index): PartitionReassignment(
            tuple(part.replicas), tuple(part.adding_replicas), tuple(part.removing_replicas)
        )
        for topic in response.topics
        for part in topic.partitions
    }


def _reassignable(
    partitions: list[TopicPartition], reassignments: Mapping[TopicPartition, Sequence[int] | None]
) -> list[altering.ReassignableTopic]:
    def replicas_of(partition: TopicPartition) -> list[int] | None:
        brokers = reassignments[partition]
        return None if brokers is None else list(brokers)

    return [
        altering.ReassignableTopic(
            name=topic,
            partitions=[
                altering.ReassignablePartition(
                    partition_index=number, replicas=replicas_of(TopicPartition(topic, number))
                )
                for number in numbers
            ],
        )
        for topic, numbers in group_by_topic(partitions).items()
    ]


def _directories(
    replicas: list[TopicPartitionReplica], directories: Mapping[TopicPartitionReplica, str]
) -> list[alter_replica_log_dirs.AlterReplicaLogDir]:
    by_path: dict[str, list[TopicPartition]] = {}
    for replica in replicas:
        by_path.setdefault(directories[replica], []).append(replica.topic_partition)
    return [
        alter_replica_log_dirs.AlterReplicaLogDir(
            path=path,
            topics=[
                alter_replica_log_dirs.AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                for topic, numbers in group_by_topic(partitions).items()
            ],
        )
        for path, partitions in by_path.items()
    ]
