"""The producer for asyncio.

    async with AsyncProducer(bootstrap_servers="localhost:9092", linger_ms=5) as producer:
        future = await producer.send("orders", key=b"42", value=b"...")
        print((await future).offset)

`await send()` returns when the record is in a batch: it waits for metadata the first time, and for memory
when buffer.memory is full. The future it returns has the outcome of the record. Cancelling send() while it
waits sends nothing; after it has returned, the record is sent even if the future is cancelled."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from time import time_ns
from typing import Any, Self, TypeVar, Unpack

from barnabas.client.aio.bridge import Deliveries, Delivery, Wakeup, run_on, running_loop, stop, within
from barnabas.client.errors import KafkaError
from barnabas.client.producer.accumulator import RECHECK_SECONDS, TopicQueues
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.core import ProducerCore
from barnabas.client.producer.records import ProducerRecord, SendOptions
from barnabas.client.producer.tables import (
    BatchCallback,
    BatchFuture,
    BatchResult,
    encoded_batches,
    highest_partition,
)
from barnabas.client.producer.transactions import State
from barnabas.client.settings import ProducerSettings
from barnabas.client.types import OffsetAndMetadata, PartitionInfo, RecordMetadata, TopicPartition
from barnabas.kernels.hashing import murmur2
from barnabas.kernels.record_append import RecordFuture

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class AsyncProducer(ProducerCore):
    """Writes records, from one event loop. The settings are Kafka's: keyword arguments with underscores, or a
    dict with dots."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, **keywords: Unpack[ProducerSettings]
    ) -> None:
        self._loop = running_loop("producer")
        self._deliveries = Deliveries(self._loop)
        super().__init__(settings, **keywords)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ---- sending

    async def send(
        self, topic: str, value: Any = None, key: Any = None, **options: Unpack[SendOptions]
    ) -> Delivery:
        """Send a record; awaiting the returned future gives its RecordMetadata.

        Options: partition, timestamp (ms), headers, on_delivery(metadata or None, error or None), which is
        called in the event loop. Key and value are bytes or None unless there are serializers."""
        on_delivery = options.pop("on_delivery", None)
        sent = None if options else self._send_plain(topic, value, key)
        if sent is None:
            sent = await self._send(topic, value, key, options)
        return self._deliveries.future_of(sent, on_delivery)

    async def send_and_wait(
        self, topic: str, value: Any = None, key: Any = None, **options: Unpack[SendOptions]
    ) -> RecordMetadata:
        """Send a record and wait for its outcome."""
        return await (await self.send(topic, value, key, **options))

    async def send_batch(
        self, topic: str | None, records: Any, on_delivery: BatchCallback | None = None
    ) -> asyncio.Future[BatchResult]:
        """Send many records at once: a table or a list of pairs, as in Producer.send_batch. Returns when all
        of them are in batches; the returned future says what was written to which partition.

        Other tasks can run after each batch. Cancelling it may leave some of the rows sent."""
        sent: list[ProducerBatch] = []
        packing = self._sender_settings.packing
        for name, rows in self._tables(topic, records):
            deadline = time.monotonic() + self._block_seconds
            queues = await self._queues_of(name, deadline, highest_partition(rows))
            rows, encoding = self._encoding(name, rows, len(queues.queues))
            for queue, batch in encoded_batches(queues, rows, encoding, packing):
                if not self._accumulator.append_batch_now(queue, batch):
                    append = partial(self._accumulator.append_batch_now, queue, batch)
                    await self._when_free(append, time.monotonic() + self._block_seconds)
                sent.append(batch)
                await asyncio.sleep(0)
        return self._deliveries.future_of(BatchFuture(sent), on_delivery)

    def _send_plain(self, topic: str, value: Any, key: Any) -> RecordFuture | None:
        """Append a record without options directly to an open batch, if there is one with space."""
        queues = self._topics.get(topic) if self._is_plain else None
        if queues is None or not (isinstance(value, bytes | None) and isinstance(key, bytes | None)):
            return None
        batch = queues.sticky_open if key is None else queues.open[murmur2(key) % len(queues.open)]
        return None if batch is None else batch.append(time_ns() // 1_000_000, key, value)

    async def _send(self, topic: str, value: Any, key: Any, options: SendOptions) -> RecordFuture:
        deadline = time.monotonic() + self._block_seconds
        record = self._record(topic, value, key, options)
        try:
            sent = await self._append(record, deadline)
        except KafkaError as error:
            self._acknowledged(None, error)
            raise
        if self._interceptors:
            sent.add_callback(self._acknowledged)
        # Let other tasks run, even if this one sends without a pause.
        await asyncio.sleep(0)
        return sent

    async def _append(self, record: ProducerRecord, deadline: float) -> RecordFuture:
        done = self._serialized_record(record)
        queues = await self._queues_of(record.topic, deadline, record.partition)
        index = self._partition_of(record, done.key, done.value, queues)
        queue = queues.queues[index]
        sent = self._accumulator.append_now(queue, done)
        if sent is None:
            sent = await self._when_free(partial(self._accumulator.append_now, queue, done), deadline)
        assert sent is not None
        return sent

    async def _when_free(self, append: Callable[[], _T], deadline: float) -> _T:
        """Wait for memory without blocking the loop."""
        wakeup = Wakeup(self._loop)
        self._accumulator.add_space_callback(wakeup.set)
        try:
            while not (sent := append()):
                now = time.monotonic()
                if now >= deadline:
                    raise self._accumulator.full_error()
                await wakeup.wait(min(deadline, now + RECHECK_SECONDS))
            return sent
        finally:
            self._accumulator.remove_space_callback(wakeup.set)

    async def _queues_of(self, topic: str, deadline: float, partition: int | None) -> TopicQueues:
        """The queues of the topic, including this partition's; wait for metadata if they are not known."""
        queues = self._known_queues(topic, partition)
        if queues is None:
            async with within(deadline - time.monotonic(), partial(self._missing, topic, partition)):
                lookup = self._cluster.topic(topic, (partition or 0) + 1)
                queues = self._queues_for(topic, await run_on(self._io, lookup))
        return queues

    # ---- flushing, metadata, closing

    def flush(self, timeout: float | None = None) -> Coroutine[Any, Any, None]:
        """Send all records now, without lingering, and wait until each is confirmed or has failed."""
        return self._flush(timeout)

    async def _flush(self, seconds: float | None) -> None:
        self._accumulator.flushing += 1
        try:
            self._wake()
            async with within(seconds, self._unconfirmed):
                for batch in reversed(self._accumulator.unfinished()):
                    await self._settled(batch)
        finally:
            self._accumulator.flushing -= 1

    def _unconfirmed(self) -> str:
        return f"not all records were confirmed within the timeout{self._io.explain()}"

    async def _settled(self, batch: ProducerBatch) -> None:
        wakeup = Wakeup(self._loop)
        batch.call_when_settled(wakeup.set)
        while not await wakeup.wait(time.monotonic() + self._block_seconds):
            continue
        for _, part in batch.parts:
            await self._settled(part)

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic with their leaders; waits at most max.block.ms."""
        return list((await run_on(self._io, self._cluster.topic(topic), self._block_seconds)).partitions)

    def close(self, timeout: float | None = None) -> Coroutine[Any, Any, None]:
        """Send the remaining records, for at most `timeout` seconds, and stop. Aborts an open transaction."""
        return self._close(timeout)

    async def _close(self, seconds: float | None) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._is_plain = False
        try:
            if self._has_open_transaction():
                await self._abort(self._block_seconds if seconds is None else seconds)
            else:
                await self.flush(seconds)
        except KafkaError as error:
            _log.warning("the producer was closed before all records were confirmed: %s", error)
        finally:
            self._accumulator.close()
            await run_on(self._io, self._stop())
            await stop(self._io)

    # ---- transactions

    async def init_transactions(self) -> None:
        """Get an epoch for the transactional id. Fences older producers with this id and aborts their
        transactions."""
        await run_on(self._io, self._transactional().initialize(), self._block_seconds)

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group_metadata: Any
    ) -> None:
        """Commit offsets of a consumer group as part of the transaction. `group_metadata` is the consumer's
        group_metadata(), or a group id."""
        sending = self._transactional().send_offsets(offsets, group_metadata)
        await run_on(self._io, sending, self._block_seconds)

    async def commit_transaction(self) -> None:
        """Commit the transaction. If one of its records has failed, this raises: call abort_transaction."""
        transactions = self._transactional()
        transactions.require(State.IN_TRANSACTION)
        self._is_plain = False
        await self.flush(self._block_seconds)
        await run_on(self._io, transactions.end(committed=True), self._block_seconds)

    async def abort_transaction(self) -> None:
        """Abort the transaction: consumers with read_committed see none of its records."""
        self._transactional().require(State.IN_TRANSACTION, State.ABORTABLE)
        await self._abort(self._block_seconds)

    async def _abort(self, seconds: float) -> None:
        transactions = self._transactional()
        self._is_plain = False
        await run_on(self._io, self._drop_unsent(), seconds)
        await self.flush(seconds)
        await run_on(self._io, transactions.end(committed=False), seconds)
