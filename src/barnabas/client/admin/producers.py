"""The producers that have written to partitions."""

from collections.abc import Collection

from barnabas.client.admin.base import UNKNOWN_TOPIC_ATTEMPTS, AdminBase, Call, group_by_topic, outcome_of
from barnabas.client.admin.types import ProducerState
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.client.types import TopicPartition
from barnabas.net.broker_connection import BrokerConnection
from barnabas.wire.messages import describe_producers

States = tuple[ProducerState, ...]


class ProducerAdmin(AdminBase):
    def describe_producers(
        self,
        partitions: Collection[TopicPartition],
        *,
        broker_id: int | None = None,
        timeout: float | None = None,
    ) -> dict[TopicPartition, States]:
        """The producers of each partition, as its leader knows them, or the replica on broker `broker_id`.

        admin.describe_producers([TopicPartition("orders", 0)])"""

        async def ask(
            connection: BrokerConnection, requested: list[TopicPartition]
        ) -> dict[TopicPartition, States | KafkaError]:
            topics = [
                describe_producers.TopicRequest(name=topic, partition_indexes=numbers)
                for topic, numbers in group_by_topic(requested).items()
            ]
            response = await connection.send(
                describe_producers.API_KEY, describe_producers.DescribeProducersRequest(topics=topics)
            )
            return {
                TopicPartition(topic.name, answer.partition_index): outcome_of(
                    answer.error_code, answer.error_message, tuple(map(_state, answer.active_producers))
                )
                for topic in response.topics
                for answer in topic.partitions
            }

        async def work(call: Call) -> dict[TopicPartition, States]:
            return await self._retry_items(call, partitions, attempt, UNKNOWN_TOPIC_ATTEMPTS)

        async def attempt(left: list[TopicPartition]) -> dict[TopicPartition, States | KafkaError]:
            if broker_id is None:
                return await self._by_leader(left, ask)
            if broker_id not in await self._node_ids():
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"The cluster has no broker {broker_id}.")
            return await self._ask_node(broker_id, left, ask)

        return self._run(timeout, work)


def _state(state: describe_producers.ProducerState) -> ProducerState:
    return ProducerState(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.coordinator_epoch,
        state.current_txn_start_offset,
    )
