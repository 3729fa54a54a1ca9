"""Record batches as bytes, to copy a partition: read them as they are in the log, and append them to another.

No record is decoded. Batches that are appended carry a producer id and sequences, so one that is sent twice,
since its answer was lost, is stored once."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.client.admin.base import AdminBase, Call, outcome_of
from barnabas.client.admin.replicas import FETCH_BY_NAME, PARTITION_BYTES_MAX
from barnabas.client.errors import ErrorCode, KafkaError, raise_for
from barnabas.client.types import TopicPartition
from barnabas.net.broker_connection import BrokerConnection
from barnabas.wire.messages import fetch, init_producer_id, produce

# The last version of Produce that identifies topics by name.
PRODUCE_BY_NAME = 12
READ_COMMITTED = 1
WAIT_MS = 500
# A broker remembers this many batches of a producer, to recognise one that comes again.
IN_FLIGHT_MAX = 5
_ALL_REPLICAS = -1
_TRANSACTION_TIMEOUT_MS = 60_000


class CommittedBatches(NamedTuple):
    """Batches from an offset on, and the aborted transactions among them: (producer id, first offset)."""

    records: bytes
    aborted: list[tuple[int, int]]


class ProducerIdentity(NamedTuple):
    producer_id: int
    epoch: int


class BatchAdmin(AdminBase):
    def read_batches(
        self,
        partition: TopicPartition,
        offset: int,
        *,
        bytes_max: int = PARTITION_BYTES_MAX,
        timeout: float | None = None,
    ) -> CommittedBatches:
        """Batches below the last stable offset, from the one with `offset` on. OFFSET_OUT_OF_RANGE if the log
        does not have it."""
        wanted = fetch.FetchPartition(
            partition=partition.partition, fetch_offset=offset, partition_max_bytes=bytes_max
        )
        request = fetch.FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=bytes_max,
            isolation_level=READ_COMMITTED,
            topics=[fetch.FetchTopic(topic=partition.topic, partitions=[wanted])],
        )

        async def ask(
            connection: BrokerConnection, _: list[TopicPartition]
        ) -> dict[TopicPartition, CommittedBatches | KafkaError]:
            response = await connection.send(fetch.API_KEY, request, version_max=FETCH_BY_NAME)
            raise_for(response.error_code)
            (data,) = response.responses[0].partitions
            aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
            found = CommittedBatches(bytes(data.records or b""), aborted)
            return {partition: outcome_of(data.error_code, None, found)}

        async def work(call: Call) -> CommittedBatches:
            async def attempt() -> CommittedBatches:
                outcome = (await self._by_leader([partition], ask))[partition]
                if isinstance(outcome, KafkaError):
                    raise outcome
                found: CommittedBatches = outcome
                return found

            return await self._retry(call, attempt)

        return self._run(timeout, work)

    def new_producer_identity(self, *, timeout: float | None = None) -> ProducerIdentity:
        """An id that no other producer has, for batches to append."""

        async def ask() -> ProducerIdentity:
            connection = await self._cluster.any()
            request = init_producer_id.InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
            )
            response = await connection.send(init_producer_id.API_KEY, request)
            raise_for(response.error_code)
            return ProducerIdentity(response.producer_id, response.producer_epoch)

        async def work(call: Call) -> ProducerIdentity:
            return await self._retry(call, ask)

        return self._run(timeout, work)

    def append_batches(
        self, partition: TopicPartition, batches: Sequence[bytes | bytearray], *, timeout: float | None = None
    ) -> list[int]:
        """Append batches in order; returns the offset of the first record of each. They must have a producer
        id and consecutive sequences."""

        async def work(call: Call) -> list[int]:
            offsets: list[int] = []

            async def attempt() -> None:
                metadata = await self._topics_metadata({partition.topic})
                leader = metadata.leader_of(partition)
                if leader is None:
                    raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
                connection = await self._cluster.connection(leader.node_id)
                while len(offsets) < len(batches):
                    window = batches[len(offsets) : len(offsets) + IN_FLIGHT_MAX]
                    asked = [_append(connection, partition, each, call) for each in window]
                    for outcome in await asyncio.gather(*asked):
                        if isinstance(outcome, KafkaError):
                            # Those after it were out of order, or came too late; all are sent again.
                            raise outcome
                        offsets.append(outcome)

            await self._retry(call, attempt)
            return offsets

        return self._run(timeout, work)


async def _append(
    connection: BrokerConnection, partition: TopicPartition, batch: bytes | bytearray, call: Call
) -> int | KafkaError:
    data = produce.PartitionProduceData(index=partition.partition, records=memoryview(batch))
    request = produce.ProduceRequest(
        acks=_ALL_REPLICAS,
        timeout_ms=call.left_ms,
        topic_data=[produce.TopicProduceData(name=partition.topic, partition_data=[data])],
    )
    try:
        response = await connection.send(produce.API_KEY, request, version_max=PRODUCE_BY_NAME)
    except KafkaError as error:
        return error
    (answer,) = response.responses[0].partition_responses
    return outcome_of(answer.error_code, answer.error_message, int(answer.base_offset))
