"""Exactly once, on the driver: one transaction. The steps, in order:

fence()     InitProducerId: earlier users of the transactional.id cannot write any more; their open
transaction is aborted marker()    OffsetFetch, stable offsets only: the last committed marker. Before fence()
it could still change begin() produce()   the rows mark()      TxnOffsetCommit: the marker end()       EndTxn:
all of it becomes visible, or nothing

A driver that dies between two steps leaves nothing visible; the next fence() aborts its transaction."""

import asyncio
import logging
from collections.abc import Iterable, Iterator

from barnabas.client.consumer.lookups import Identity, committed_offsets, with_retries
from barnabas.client.consumer.network import Network
from barnabas.client.errors import ErrorCode, KafkaError, KafkaTimeoutError, error_from
from barnabas.client.producer.sequences import SequenceBook
from barnabas.client.producer.settings import sender_settings_of
from barnabas.client.producer.transactions import State, Transactions
from barnabas.client.types import OffsetAndMetadata, TopicPartition
from barnabas.spark.sink.clusters import SinkCluster
from barnabas.spark.sink.stamping import stamp_producer
from barnabas.wire.messages import produce

_log = logging.getLogger(__name__)
# From 12 on a partition joins the transaction with its first batch; 13 names topics by id.
PRODUCE_VERSION_MAX, PRODUCE_VERSION_MAX_EXPLICIT_ADD = 12, 11
ABORT_SECONDS_MAX = 5.0


class Publisher:
    """One transaction of a transactional.id; use a new object for the next."""

    def __init__(self, sink: SinkCluster, transactional_id: str) -> None:
        self._sink = sink
        self._id = transactional_id
        self._book = SequenceBook(is_transactional=True)
        self._transactions = Transactions(
            sink.cluster, self._book, transactional_id, sink.config["transaction.timeout.ms"]
        )
        self._settings = sender_settings_of(sink.config)
        self._room = asyncio.Semaphore(self._settings.in_flight_max)
        self._failure: BaseException | None = None

    # ---- the steps

    def fence(self) -> None:
        self._sink.call(self._transactions.initialize(), self._sink.block_seconds)

    def marker(self, where: TopicPartition) -> OffsetAndMetadata | None:
        network = Network(self._sink.cluster, self._id)

        async def ask() -> OffsetAndMetadata | None:
            return (await committed_offsets(network, [where], Identity())).get(where)

        return self._sink.call(with_retries(network, ask, self._sink.block_seconds))

    def begin(self) -> None:
        self._transactions.begin()

    def produce(self, batches: dict[TopicPartition, Iterable[bytearray]]) -> None:
        """Write complete batches, in order for each partition; they are stamped in place."""
        self._sink.call(self._transactions.add_partitions(batches), self._sink.block_seconds)
        self._sink.call(self._produce_all(batches))

    def mark(self, where: TopicPartition, marker: OffsetAndMetadata) -> None:
        # If the batch has no rows, the metadata of the topic was not requested yet.
        self._sink.partition_count(where.topic)
        self._sink.call(self._transactions.send_offsets({where: marker}, self._id), self._sink.block_seconds)

    def end(self) -> None:
        self._sink.call(self._transactions.end(committed=True), self._sink.block_seconds)

    def give_up(self) -> None:
        """Abort a transaction that failed before end(), so that readers need not wait for its timeout. If
        this fails, the next fence() aborts it."""
        if self._transactions.state is State.FATAL:
            return
        try:
            self._sink.call(self._transactions.end(committed=False), ABORT_SECONDS_MAX)
        except KafkaError as error:
            _log.info(
                "the transaction of %s could not be aborted; the next start does it: %s", self._id, error
            )

    # ---- producing

    async def _produce_all(self, batches: dict[TopicPartition, Iterable[bytearray]]) -> None:
        """All partitions at the same time. After a failure no new request is sent, but requests in progress
        are waited for: they must not arrive after the transaction was aborted."""
        tasks = [self._produce(partition, iter(each)) for partition, each in batches.items()]
        await asyncio.gather(*tasks)
        if self._failure is not None:
            raise self._failure

    async def _produce(self, partition: TopicPartition, batches: Iterator[bytearray]) -> None:
        sequence = 0
        try:
            for batch in batches:
                async with self._room:
                    if self._failure is not None:
                        return
                    sequence = stamp_producer(batch, self._book.producer_id, self._book.epoch, sequence)
                    await self._send(partition, batch)
        except KafkaError as error:
            self._failure = self._failure or self._transactions.batch_failed(error)
        except Exception as error:
            self._failure = self._failure or error

    async def _send(self, partition: TopicPartition, batch: bytearray) -> None:
        """Try until the batch is confirmed, cannot be written, or delivery.timeout.ms is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.delivery_seconds
        attempts = 0
        while True:
            try:
                await self._send_once(partition, batch, deadline - loop.time())
                return
            except KafkaError as error:
                if not error.retriable or self._failure is not None:
                    raise
                if loop.time() >= deadline:
                    text = f"records for {partition} were not confirmed in time: {error}"
                    raise KafkaTimeoutError(text) from error
            attempts += 1
            self._sink.cluster.request_update()
            await asyncio.sleep(self._sink.cluster.backoff.seconds(attempts))

    async def _send_once(self, partition: TopicPartition, batch: bytearray, seconds: float) -> None:
        cluster = self._sink.cluster
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                leader = await cluster.leader(partition)
                connection = await cluster.connection(leader.node_id, "produce")
        except TimeoutError:
            raise KafkaTimeoutError(f"the leader of {partition} cannot be reached") from None
        data = produce.PartitionProduceData(index=partition.partition, records=memoryview(batch))
        request = produce.ProduceRequest(
            transactional_id=self._id,
            acks=-1,
            timeout_ms=int(self._settings.request_seconds * 1000),
            topic_data=[produce.TopicProduceData(name=partition.topic, partition_data=[data])],
        )
        version_max = (
            PRODUCE_VERSION_MAX if self._transactions.adds_implicitly else PRODUCE_VERSION_MAX_EXPLICIT_ADD
        )
        answer = await connection.send(produce.API_KEY, request, version_max=version_max)
        result = answer.responses[0].partition_responses[0]
        if result.error_code == ErrorCode.MESSAGE_TOO_LARGE:
            text = f"a batch of {len(batch)} bytes is too large for {partition}: set a lower kafka.batch.size"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, text)
        if result.error_code and result.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            raise error_from(result.error_code, result.error_message)
