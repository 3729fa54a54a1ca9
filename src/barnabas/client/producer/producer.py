"""The producer, as users see it.

    with Producer(bootstrap_servers="localhost:9092", linger_ms=5) as producer:
        future = producer.send("orders", key=b"42", value=b"...")
        print(future.result(10).offset)

send() may be called from any thread. The usual record costs it a dictionary lookup and one call of a kernel;
all else happens when a batch is opened. Errors that are known at once are raised by send(): a record that is
too large, no metadata or no memory within max.block.ms; what happens later is in the future."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from time import time_ns
from types import TracebackType
from typing import Any, Self, Unpack

from barnabas.client.cluster import Cluster
from barnabas.client.config import producer_config
from barnabas.client.connection import BrokerConnection
from barnabas.client.errors import (
    ClosedError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    SerializationError,
)
from barnabas.client.metadata import ClusterMetadata
from barnabas.client.producer.accumulator import Accumulator, Record, TopicQueues
from barnabas.client.producer.batch import Callback, ProducerBatch
from barnabas.client.producer.partitioners import key_partition, partitioner_of
from barnabas.client.producer.records import (
    ProducerRecord,
    SendOptions,
    checked_partition,
    headers_of,
    serializer_of,
)
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.sequences import SequenceBook
from barnabas.client.producer.settings import limits_of, sender_settings_of
from barnabas.client.producer.transactions import State, Transactions
from barnabas.client.runtime import IoThread
from barnabas.client.types import OffsetAndMetadata, PartitionInfo, RecordMetadata, TopicPartition
from barnabas.kernels.record_append import RecordFuture, murmur2

_log = logging.getLogger(__name__)
# Longer waits than a lock takes are not told from this one.
BLOCK_SECONDS_MAX = 1e8


class _View:
    """The cluster as the sender wants it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.refresh = cluster.refresh
        self.any = cluster.any

    def leader_of(self, partition: TopicPartition) -> int | None:
        leader = self._cluster.metadata.leader_of(partition)
        return None if leader is None else leader.node_id

    async def connection(self, node_id: int) -> BrokerConnection:
        return await self._cluster.connection(node_id, "produce")


class Producer:
    def __init__(self, settings: Mapping[str, Any] | None = None, **keywords: Any) -> None:
        config = producer_config(settings, **keywords)
        self._config = config
        self._sender_settings = sender_settings_of(config)
        self._partitioner = partitioner_of(config["partitioner.class"])
        self._key_serializer = serializer_of("key", config["key.serializer"])
        self._value_serializer = serializer_of("value", config["value.serializer"])
        self._interceptors: tuple[Any, ...] = config["interceptor.classes"]
        self._ignores_keys: bool = config["partitioner.ignore.keys"]
        hooks = (self._partitioner, self._key_serializer, self._value_serializer)
        self._is_simple = not (self._interceptors or self._ignores_keys or any(hooks))
        self._block_seconds = min(config.seconds("max.block.ms"), BLOCK_SECONDS_MAX)
        self._topics: dict[str, TopicQueues] = {}
        self._is_awake = False
        self._is_closed = False
        self._closing = threading.Lock()
        self._accumulator = Accumulator(limits_of(config), self._wake)
        self._book = SequenceBook(config["transactional.id"] is not None)
        self._transactions: Transactions | None = None
        self._io = IoThread(f"barnabas-producer-{config['client.id']}").start()
        try:
            self._io.call(self._start())
        except BaseException:
            self._io.stop()
            raise
        # Whether a record with nothing special may take the short way.
        self._is_plain = self._is_simple and self._transactions is None

    async def _start(self) -> None:
        self._cluster = Cluster(self._config, allow_auto_create=True)
        self._cluster.start()
        self._cluster.listeners.append(self._metadata_changed)
        transactional_id = self._config["transactional.id"]
        if transactional_id is not None:
            timeout_ms = self._config["transaction.timeout.ms"]
            self._transactions = Transactions(self._cluster, self._book, transactional_id, timeout_ms)
        self._sender = Sender(
            self._accumulator, _View(self._cluster), self._sender_settings, self._book, self._transactions
        )
        if self._transactions is not None:
            self._transactions.wake = self._sender.turn

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ---- sending

    def send(
        self, topic: str, value: Any = None, key: Any = None, **options: Unpack[SendOptions]
    ) -> RecordFuture:
        """Hand over a record; the future's result() is its RecordMetadata.

        Options: partition, timestamp (ms), headers, on_delivery(metadata or None, error or None), which is
        called on the I/O thread. Key and value are bytes or None unless there are serializers."""
        on_delivery = options.pop("on_delivery", None) if options else None
        if self._is_plain and not options:
            queues = self._topics.get(topic)
            if queues is not None:
                batch = queues.sticky_open if key is None else queues.open[murmur2(key) % len(queues.open)]
                if batch is not None:
                    future = batch.append(time_ns() // 1_000_000, key, value)
                    if future is not None:
                        return future if on_delivery is None else future.add_callback(on_delivery)
        return self._send(topic, value, key, options, on_delivery)

    def send_batch(self, topic: str, records: Any, **options: Unpack[SendOptions]) -> list[RecordFuture]:
        """Send many records: (key, value) pairs, or an Arrow table with columns `value` and perhaps `key`."""
        if hasattr(records, "column_names"):
            values = records.column("value").to_pylist()
            keys = (
                records.column("key").to_pylist() if "key" in records.column_names else [None] * len(values)
            )
            pairs: Sequence[tuple[Any, Any]] = list(zip(keys, values, strict=True))
        else:
            pairs = records
        send = self.send
        return [send(topic, value, key, **options) for key, value in pairs]

    def _send(
        self, topic: str, value: Any, key: Any, options: SendOptions, on_delivery: Callback | None
    ) -> RecordFuture:
        """A record that needs more than a place in an open batch."""
        self._check_usable()
        deadline = time.monotonic() + self._block_seconds
        record = ProducerRecord(
            topic,
            value,
            key,
            options.get("partition"),
            options.get("timestamp"),
            headers_of(options.get("headers")),
        )
        record = self._intercepted(record)
        try:
            future = self._append(record, deadline)
        except KafkaError as error:
            self._acknowledged(None, error)
            raise
        if on_delivery is not None:
            future.add_callback(on_delivery)
        if self._interceptors:
            future.add_callback(self._acknowledged)
        return future

    def _append(self, record: ProducerRecord, deadline: float) -> RecordFuture:
        key = self._serialized("key", self._key_serializer, record.topic, record.key)
        value = self._serialized("value", self._value_serializer, record.topic, record.value)
        queues = self._queues_of(record.topic, deadline)
        index = self._partition_of(record, key, value, queues)
        timestamp = time_ns() // 1_000_000 if record.timestamp is None else record.timestamp
        if timestamp < 0:
            raise ValueError(f"a timestamp is not negative: {timestamp}")
        return self._accumulator.append(
            queues.queues[index], Record(timestamp, key, value, record.headers), deadline
        )

    def _partition_of(
        self, record: ProducerRecord, key: bytes | None, value: bytes | None, queues: TopicQueues
    ) -> int:
        count = len(queues.queues)
        if record.partition is not None:
            return checked_partition(record.topic, record.partition, count)
        if self._partitioner is not None:
            return checked_partition(record.topic, self._partitioner(record.topic, key, value, count), count)
        if key is not None and not self._ignores_keys:
            return key_partition(key, count)
        if self._accumulator.needs_new_sticky(queues):
            infos = self._cluster.metadata.topics[record.topic].partitions
            queues.choose_sticky([info.partition for info in infos if info.leader is not None])
        return queues.sticky

    def _queues_of(self, topic: str, deadline: float) -> TopicQueues:
        queues = self._topics.get(topic)
        if queues is None:
            try:
                known = self._io.call(self._cluster.topic(topic), max(deadline - time.monotonic(), 0.0))
            except KafkaTimeoutError:
                text = f"no metadata of topic {topic!r} within max.block.ms"
                raise KafkaTimeoutError(text) from None
            with self._closing:
                queues = self._topics.setdefault(topic, TopicQueues(topic, len(known.partitions)))
        return queues

    def _metadata_changed(self, metadata: ClusterMetadata) -> None:
        for name, queues in list(self._topics.items()):
            queues.grow(metadata.partition_count(name))
        self._wake()

    def _serialized(self, what: str, serializer: Callable[[Any], Any] | None, topic: str, given: Any) -> Any:
        if serializer is None:
            if given is not None and not isinstance(given, bytes):
                kind = type(given).__name__
                raise TypeError(f"a {what} is bytes or None, not {kind}, unless there is a {what}_serializer")
            return given
        try:
            done = serializer(given)
        except Exception as error:
            raise SerializationError(f"the {what} of a record for {topic!r}: {error}") from error
        if done is not None and not isinstance(done, bytes):
            raise SerializationError(f"{what}_serializer gave {type(done).__name__}, not bytes")
        return done

    def _intercepted(self, record: ProducerRecord) -> ProducerRecord:
        for interceptor in self._interceptors:
            if hasattr(interceptor, "on_send"):
                try:
                    record = interceptor.on_send(record)
                except Exception:
                    # As in Kafka: an interceptor's failure is its own, the record goes on.
                    _log.exception("on_send of an interceptor failed")
        return record

    def _acknowledged(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        for interceptor in self._interceptors:
            if hasattr(interceptor, "on_acknowledgement"):
                try:
                    interceptor.on_acknowledgement(metadata, error)
                except Exception:
                    _log.exception("on_acknowledgement of an interceptor failed")

    def _check_usable(self) -> None:
        if self._is_closed:
            raise ClosedError("the producer is closed")
        if self._transactions is not None:
            self._transactions.require(State.IN_TRANSACTION)
        if self._sender.fatal is not None:
            raise self._sender.fatal

    def _wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            self._io.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_awake = False
        self._sender.turn()

    # ---- waiting, looking, closing

    def flush(self, timeout: float | None = None) -> None:
        """Send at once what was handed over so far and wait for its outcome, whatever it is."""
        if self._io.is_current:
            raise RuntimeError("a callback of the producer may not flush it")
        deadline = None if timeout is None else time.monotonic() + timeout
        self._accumulator.flushing += 1
        try:
            self._wake()
            for batch in self._accumulator.unfinished():
                _wait(batch, deadline)
        finally:
            self._accumulator.flushing -= 1

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        return list(self._io.call(self._cluster.topic(topic), self._block_seconds).partitions)

    def metrics(self) -> dict[str, float]:
        return {
            **self._sender.metrics,
            "buffer-total-bytes": self._accumulator.limits.buffer_bytes,
            "buffer-available-bytes": self._accumulator.limits.buffer_bytes - self._accumulator.used_bytes,
            "waiting-threads": self._accumulator.blocked,
        }

    def close(self, timeout: float | None = None) -> None:
        """Send what is left, at most for `timeout` seconds, and stop; an open transaction is aborted."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            self._is_plain = False
        try:
            if not self._io.is_current:
                self._finish_work(timeout)
        finally:
            self._accumulator.close()
            stop = self._stop()
            if self._io.is_current:
                self._io.run(stop)
            else:
                self._io.call(stop)
                self._io.stop()

    def _finish_work(self, timeout: float | None) -> None:
        try:
            if self._transactions is not None and self._transactions.state in (
                State.IN_TRANSACTION,
                State.ABORTABLE,
            ):
                self._abort(self._block_seconds if timeout is None else timeout)
            else:
                self.flush(timeout)
        except KafkaError as error:
            _log.warning("the producer was closed with work left: %s", error)

    async def _stop(self) -> None:
        self._sender.fail_all(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the producer was closed"))
        await self._cluster.close()

    # ---- transactions

    def init_transactions(self) -> None:
        """Get an epoch for the transactional id; older producers with it are fenced, their work is undone."""
        transactions = self._transactional()
        self._io.call(transactions.initialize(), self._block_seconds)

    def begin_transaction(self) -> None:
        self._transactional().begin()
        self._is_plain = self._is_simple

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group_metadata: Any
    ) -> None:
        """Commit offsets of a consumer group with the transaction; `group_metadata` is the consumer's
        group_metadata(), or a group id."""
        transactions = self._transactional()
        self._io.call(transactions.send_offsets(offsets, group_metadata), self._block_seconds)

    def commit_transaction(self) -> None:
        """Write the transaction; raises and changes nothing when a record of it has failed: abort then."""
        transactions = self._transactional()
        transactions.require(State.IN_TRANSACTION)
        self._is_plain = False
        self.flush(self._block_seconds)
        self._io.call(transactions.end(committed=True), self._block_seconds)

    def abort_transaction(self) -> None:
        transactions = self._transactional()
        transactions.require(State.IN_TRANSACTION, State.ABORTABLE)
        self._abort(self._block_seconds)

    def _abort(self, timeout: float) -> None:
        transactions = self._transactional()
        self._is_plain = False
        self._io.call(self._drop_unsent(), timeout)
        self.flush(timeout)
        self._io.call(transactions.end(committed=False), timeout)

    async def _drop_unsent(self) -> None:
        error = KafkaError(
            ErrorCode.TRANSACTION_ABORTABLE, "the transaction was aborted before this was sent"
        )
        self._sender.fail_all(error, unsent_only=True)

    def _transactional(self) -> Transactions:
        if self._transactions is None:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "transactions need transactional_id to be set")
        return self._transactions


def _wait(batch: ProducerBatch, deadline: float | None) -> None:
    if not batch.wait(None if deadline is None else deadline - time.monotonic()):
        raise KafkaTimeoutError("not everything was confirmed in time")
    for _, part in batch.parts:
        _wait(part, deadline)
