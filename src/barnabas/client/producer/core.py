"""What the producer and its asyncio form share: settings, the I/O thread, and the steps of a send that do not
wait. The subclasses implement the waiting."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import time_ns
from typing import Any, Unpack

from barnabas.client.cluster import Cluster
from barnabas.client.config import producer_config
from barnabas.client.errors import ClosedError, ErrorCode, KafkaError, SerializationError
from barnabas.client.habits import Hinted, check_keywords, check_settings
from barnabas.client.metadata import ClusterMetadata, TopicMetadata, no_partition
from barnabas.client.producer.accumulator import Accumulator, Record, TopicQueues
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
from barnabas.client.producer.tables import by_topic, is_table, table_of_pairs, with_partitions
from barnabas.client.producer.transactions import State, Transactions
from barnabas.client.runtime import IoThread
from barnabas.client.settings import ProducerSettings
from barnabas.client.types import RecordMetadata, TopicPartition
from barnabas.net.broker_connection import BrokerConnection
from barnabas.records.tables import Encoding

_log = logging.getLogger(__name__)
# Locks do not accept longer timeouts. Nobody notices the difference.
BLOCK_SECONDS_MAX = 1e8


class _View:
    """The cluster, as the sender uses it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.refresh = cluster.refresh
        self.learn_leaders = cluster.learn_leaders
        self.any = cluster.any
        self.avoid = cluster.avoid

    def leader_of(self, partition: TopicPartition) -> int | None:
        leader = self._cluster.metadata.leader_of(partition)
        return None if leader is None else leader.node_id

    async def connection(self, node_id: int) -> BrokerConnection:
        return await self._cluster.connection(node_id, "produce")


class ProducerCore(Hinted):
    def __init__(
        self, settings: Mapping[str, Any] | None = None, **keywords: Unpack[ProducerSettings]
    ) -> None:
        check_settings(type(self).__name__, settings)
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
        # Whether `send` may append a record without options directly to an open batch.
        self._is_plain = self._is_simple and self._transactions is None

    async def _start(self) -> None:
        self._cluster = Cluster(self._config, allow_auto_create=True)
        self._cluster.start()
        self._io.explain = self._accumulator.explain = self._cluster.troubles.explain
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

    # ---- the steps of a send

    def _record(self, topic: str, value: Any, key: Any, options: SendOptions) -> ProducerRecord:
        """Check that the producer may send now, and pass the record through the interceptors."""
        self._check_usable()
        check_keywords("send()", options, SendOptions.__annotations__)
        return self._intercepted(
            ProducerRecord(
                topic,
                value,
                key,
                options.get("partition"),
                options.get("timestamp"),
                headers_of(options.get("headers")),
            )
        )

    def _serialized_record(self, record: ProducerRecord) -> Record:
        key = self._serialized("key", self._key_serializer, record.topic, record.key)
        value = self._serialized("value", self._value_serializer, record.topic, record.value)
        timestamp = time_ns() // 1_000_000 if record.timestamp is None else record.timestamp
        if timestamp < 0:
            raise ValueError(f"a timestamp must not be negative: {timestamp}")
        return Record(timestamp, key, value, record.headers)

    def _queues_for(self, topic: str, known: TopicMetadata) -> TopicQueues:
        with self._closing:
            return self._topics.setdefault(topic, TopicQueues(topic, len(known.partitions)))

    def _known_queues(self, topic: str, partition: int | None) -> TopicQueues | None:
        """None if the topic, or this partition of it, is not in the metadata yet."""
        queues = self._topics.get(topic)
        is_known = queues is not None and (partition is None or partition < len(queues.queues))
        return queues if is_known else None

    def _missing(self, topic: str, partition: int | None) -> str:
        """Why `send` gives up after max.block.ms."""
        count = self._cluster.metadata.partition_count(topic)
        if count and partition is not None and partition >= count:
            return f"not done within max.block.ms: {no_partition(topic, partition, count)}"
        return f"got no metadata of topic {topic!r} within max.block.ms{self._io.explain()}"

    def _tables(self, topic: str | None, records: Any) -> Iterator[tuple[str, list[Any]]]:
        """The records of send_batch, as the rows of each topic."""
        self._check_usable()
        if not is_table(records):
            records = table_of_pairs(
                (
                    self._serialized("key", self._key_serializer, str(topic), key),
                    self._serialized("value", self._value_serializer, str(topic), value),
                )
                for key, value in records
            )
        return by_topic(topic, records)

    def _encoding(self, topic: str, rows: list[Any], count: int) -> tuple[list[Any], Encoding]:
        """The rows, with the partitions that a custom partitioner chose, and how to encode them."""
        if self._partitioner is not None:
            rows = with_partitions(rows, partial(self._partitioner, topic), count)
        limits = self._accumulator.limits
        bytes_max = min(limits.request_bytes_max, limits.buffer_bytes)
        spread = self._available(topic)
        return rows, Encoding(count, limits.batch_bytes, bytes_max, spread, self._ignores_keys)

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
            queues.choose_sticky(self._available(record.topic))
        return queues.sticky

    def _available(self, topic: str) -> list[int]:
        """The partitions that have a leader."""
        infos = self._cluster.metadata.topics[topic].partitions
        return [info.partition for info in infos if info.leader is not None]

    def _metadata_changed(self, metadata: ClusterMetadata) -> None:
        for name, queues in list(self._topics.items()):
            queues.grow(metadata.partition_count(name))
        self._wake()

    def _serialized(self, what: str, serializer: Callable[[Any], Any] | None, topic: str, given: Any) -> Any:
        if serializer is None:
            if given is not None and not isinstance(given, bytes):
                kind = type(given).__name__
                raise TypeError(f"without a {what}_serializer, a {what} must be bytes or None, not {kind}")
            return given
        try:
            done = serializer(given)
        except Exception as error:
            raise SerializationError(
                f"cannot serialize the {what} of a record for {topic!r}: {error}"
            ) from error
        if done is not None and not isinstance(done, bytes):
            raise SerializationError(f"{what}_serializer returned {type(done).__name__}, not bytes")
        return done

    def _intercepted(self, record: ProducerRecord) -> ProducerRecord:
        for interceptor in self._interceptors:
            if hasattr(interceptor, "on_send"):
                try:
                    record = interceptor.on_send(record)
                except Exception:
                    # As in Kafka: the record is sent even if an interceptor fails.
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

    # ---- metrics, closing, transactions

    def metrics(self) -> dict[str, float]:
        """Metrics by Kafka's names: records sent, failed and retried, and the memory of the buffer."""
        return {
            **self._sender.metrics,
            "buffer-total-bytes": self._accumulator.limits.buffer_bytes,
            "buffer-available-bytes": self._accumulator.limits.buffer_bytes - self._accumulator.used_bytes,
            "waiting-threads": self._accumulator.blocked,
        }

    async def _stop(self) -> None:
        self._sender.fail_all(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the producer was closed"))
        await self._cluster.close()

    async def _drop_unsent(self) -> None:
        error = KafkaError(
            ErrorCode.TRANSACTION_ABORTABLE, "the transaction was aborted before this record was sent"
        )
        self._sender.fail_all(error, unsent_only=True)

    def _transactional(self) -> Transactions:
        if self._transactions is None:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "set transactional_id to use transactions")
        return self._transactions

    def begin_transaction(self) -> None:
        """Begin a transaction. All records sent from now on belong to it."""
        self._transactional().begin()
        self._is_plain = self._is_simple

    def _has_open_transaction(self) -> bool:
        transactions = self._transactions
        return transactions is not None and transactions.state in (State.IN_TRANSACTION, State.ABORTABLE)
