"""Proposals of the leaders here to change in-sync replicas: AlterPartition requests to the controller.

One request is under way at a time. Proposals that are made meanwhile go together in the next one, so a broker
that leads a thousand partitions and loses a follower sends a few requests. Each partition has at most one
proposal, which it keeps until it gets the result here or newer metadata. Only for the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.ids import Uuid
from barnabas.replication.partition import Partition
from barnabas.replication.ports import IsrProposal
from barnabas.wire.messages.alter_partition import API_KEY as ALTER_PARTITION
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger(__name__)

# Until then the channel repeats a request. A leader goes on serving without an answer.
REQUEST_SECONDS = 30.0
# The pause after a request that failed, before the leaders' next proposals are sent.
RETRY_SECONDS = 0.05
PARTITIONS_IN_A_REQUEST = 5000

# Sends the request to the controller, wherever it is.
Send: TypeAlias = Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse]]


class AlterPartitions:
    """`broker_epoch` gives the present epoch of this broker."""

    def __init__(self, broker_id: int, broker_epoch: Callable[[], int], send: Send) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._send = send
        self._waiting: dict[Partition, IsrProposal] = {}
        self._task: asyncio.Task[None] | None = None

    def propose(self, partition: Partition, proposal: IsrProposal) -> None:
        self._waiting[partition] = proposal
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._send_all())

    async def close(self) -> None:
        """Forget all proposals: this broker stops."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                batch = dict(list(self._waiting.items())[:PARTITIONS_IN_A_REQUEST])
                for partition in batch:
                    del self._waiting[partition]
                if not await self._send_one(batch):
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._task = None

    async def _send_one(self, batch: dict[Partition, IsrProposal]) -> bool:
        """Send one request and hand out its results; False if the request as a whole failed."""
        try:
            response = await self._send(self._request(batch))
            code = error_of(response.error_code)
        except KafkaError as error:
            response, code = AlterPartitionResponse(), error.code
        if code != ErrorCode.NONE:
            logger.warning("the controller did not take %d ISR change(s): %s", len(batch), code.name)
            for partition, proposal in batch.items():
                partition.isr_refused(proposal, code)
            return False
        results = {
            (topic.topic_id, result.partition_index): result
            for topic in response.topics
            for result in topic.partitions
        }
        for partition, proposal in batch.items():
            key = (partition.topic_id, partition.topic_partition.partition)
            _deliver(partition, proposal, results.get(key))
        return True

    def _request(self, batch: dict[Partition, IsrProposal]) -> AlterPartitionRequest:
        topics: dict[Uuid, list[RequestPartitionData]] = {}
        for partition, proposal in batch.items():
            topics.setdefault(partition.topic_id, []).append(
                RequestPartitionData(
                    partition_index=partition.topic_partition.partition,
                    leader_epoch=proposal.leader_epoch,
                    partition_epoch=proposal.partition_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=member, broker_epoch=epoch) for member, epoch in proposal.isr
                    ],
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            topics=[
                RequestTopicData(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
        )


def _deliver(partition: Partition, proposal: IsrProposal, result: ResponsePartitionData | None) -> None:
    if result is None:
        # The controller must answer for every partition. If it did not, the leader asks again.
        partition.isr_refused(proposal, ErrorCode.UNKNOWN_SERVER_ERROR)
    elif result.error_code != ErrorCode.NONE:
        partition.isr_refused(proposal, error_of(result.error_code))
    elif result.leader_epoch == proposal.leader_epoch:
        partition.isr_accepted(proposal, tuple(result.isr), result.partition_epoch)
    else:
        partition.isr_refused(proposal, ErrorCode.FENCED_LEADER_EPOCH)


def isr_changes(broker: Broker) -> AlterPartitions:
    """Proposals go through the broker's channel to the controller."""

    async def send(request: AlterPartitionRequest) -> AlterPartitionResponse:
        response: AlterPartitionResponse = await broker.controller_channel.send(
            ALTER_PARTITION, request, within_seconds=REQUEST_SECONDS
        )
        return response

    return AlterPartitions(broker.id, lambda: broker.metadata.broker_epoch, send)
