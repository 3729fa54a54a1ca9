"""confluent-kafka (librdkafka) with the interface of the suite."""

import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import confluent_kafka
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec
from tests.clients.client import CODECS, READING, SENDING, BrokerError, ClusterView, Message, Reading, Sending


def _broker_error(error: confluent_kafka.KafkaError) -> BrokerError:
    return BrokerError(error.code(), error.str())


def answered(future: Any) -> Any:
    """The value of an admin future, or the error of the broker."""
    try:
        return future.result(30)
    except KafkaException as raised:
        raise _broker_error(raised.args[0]) from raised


class ConfluentClient:
    name = "confluent-kafka"
    codecs = frozenset(CODECS)

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def producer(self, sending: Sending, **settings: Any) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "compression.type": sending.compression,
                "acks": sending.acks,
                "enable.idempotence": sending.idempotent,
                "linger.ms": sending.linger_ms,
                "message.max.bytes": sending.bytes_max,
                "reconnect.backoff.max.ms": 300,
                **settings,
            }
        )

    def produce(
        self, topic: str, messages: Iterable[Message], sending: Sending = SENDING
    ) -> list[int | None]:
        producer = self.producer(sending)
        outcomes: dict[int, int | BrokerError | None] = {}
        for number, message in enumerate(messages):
            outcomes[number] = None
            producer.produce(
                topic,
                message.value,
                message.key,
                partition=message.partition,
                headers=list(message.headers),
                on_delivery=_outcome_callback(outcomes, number, sending.acks),
                timestamp=message.timestamp_ms or 0,  # 0: the library uses the current time
            )
            producer.poll(0)
        assert producer.flush(60) == 0, "librdkafka still holds messages"
        return _offsets(outcomes)

    def consumer(self, reading: Reading) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"unused-{uuid.uuid4().hex}",  # the library needs it even for assign
                "enable.auto.commit": False,
                "auto.offset.reset": "error" if reading.reset == "none" else reading.reset,
                "fetch.wait.max.ms": reading.wait_ms,
                "fetch.message.max.bytes": reading.bytes_max,
            }
        )

    def read(
        self, topic: str, count: int, offset: int = 0, partition: int = 0, reading: Reading = READING
    ) -> list[Message]:
        consumer = self.consumer(reading)
        try:
            consumer.assign([TopicPartition(topic, partition, offset)])
            received: list[Message] = []
            deadline = time.monotonic() + reading.timeout_s
            while len(received) < count and time.monotonic() < deadline:
                record = consumer.poll(0.1)
                if record is None:
                    continue
                if (error := record.error()) is not None:
                    raise _reset_error(error)
                received.append(_received(record))
            return received
        finally:
            consumer.close()

    def offset_range(self, topic: str, partition: int = 0) -> tuple[int, int]:
        consumer = self.consumer(Reading())
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=20)
            return low, high
        finally:
            consumer.close()

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        consumer = self.consumer(Reading())
        try:
            response = consumer.offsets_for_times(
                [TopicPartition(topic, partition, timestamp_ms)], timeout=20
            )
            return None if response[0].offset < 0 else int(response[0].offset)
        finally:
            consumer.close()


def _outcome_callback(outcomes: dict[int, Any], number: int, acks: str) -> Callable[[Any, Any], None]:
    def delivered(error: confluent_kafka.KafkaError | None, record: confluent_kafka.Message) -> None:
        known = None if acks == "0" else record.offset()
        outcomes[number] = known if error is None else _broker_error(error)

    return delivered


def _offsets(outcomes: Mapping[int, int | BrokerError | None]) -> list[int | None]:
    offsets: list[int | None] = []
    for outcome in outcomes.values():
        if isinstance(outcome, BrokerError):
            raise outcome
        offsets.append(outcome)
    return offsets


def _reset_error(error: confluent_kafka.KafkaError) -> BrokerError:
    # librdkafka reports the failed reset; the cause it gives is the broker's OFFSET_OUT_OF_RANGE.
    if error.code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET:
        return BrokerError(confluent_kafka.KafkaError.OFFSET_OUT_OF_RANGE, error.str())
    return _broker_error(error)


def _received(record: Any) -> Message:
    kind, timestamp_ms = record.timestamp()
    return Message(
        record.value(),
        record.key(),
        tuple(record.headers() or ()),
        timestamp_ms,
        record.partition(),
        record.offset(),
        kind == TIMESTAMP_LOG_APPEND_TIME,
    )


class ConfluentAdmin:
    def __init__(self, bootstrap: str) -> None:
        self.library = AdminClient({"bootstrap.servers": bootstrap})

    def create_topic(
        self, topic: str, partitions: int = 1, replication: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partitions, replication, config=dict(configs or {}))
        answered(self.library.create_topics([new])[topic])

    def is_led(self, topic: str, partitions: int) -> bool:
        """Whether the leader of every partition answers for it."""
        requested_offsets = {
            TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)
        }
        # librdkafka caches that there was no leader, and would use the cache forever.
        self.library.list_topics(topic, timeout=20)
        response = self.library.list_offsets(requested_offsets, request_timeout=20)
        return all(future.exception() is None for future in response.values())

    def delete_topic(self, topic: str) -> None:
        answered(self.library.delete_topics([topic])[topic])

    def topics(self) -> set[str]:
        return set(self.library.list_topics(timeout=20).topics)

    def partition_count(self, topic: str) -> int:
        return len(self.library.list_topics(topic, timeout=20).topics[topic].partitions)

    def add_partitions(self, topic: str, total: int) -> None:
        answered(self.library.create_partitions([NewPartitions(topic, total)])[topic])

    def topic_config(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource("topic", topic)
        entries = answered(self.library.describe_configs([resource])[resource])
        return {name: entry.value for name, entry in entries.items()}

    def replace_config(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource("topic", topic, set_config=dict(configs))
        with warnings.catch_warnings():
            # The call is deprecated in the library; the broker still has to answer the old request.
            warnings.simplefilter("ignore", DeprecationWarning)
            futures = self.library.alter_configs([resource])
        answered(futures[resource])

    def delete_records(self, topic: str, before: int) -> int:
        where = TopicPartition(topic, 0, before)
        return int(answered(self.library.delete_records([where])[where]).low_watermark)

    def cluster(self) -> ClusterView:
        response = answered(self.library.describe_cluster())
        nodes = {node.id: f"{node.host}:{node.port}" for node in response.nodes}
        return ClusterView(response.cluster_id, response.controller.id, nodes)

    def close(self) -> None:
        """Nothing to do: the library closes when the object is deleted."""
