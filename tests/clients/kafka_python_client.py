"""kafka-python with the interface of the suite."""

import re
import time
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from tests.clients.client import READING, SENDING, BrokerError, ClusterView, Message, Reading, Sending

with warnings.catch_warnings():
    # It uses a call that is deprecated in Python 3.11; our tests treat warnings as errors.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.codec
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
    from kafka.errors import BrokerResponseError, KafkaError

# The library needs a separate package for each codec, and can use only those that are installed.
_CODECS = {
    "none": True,
    "gzip": kafka.codec.has_gzip(),
    "snappy": kafka.codec.has_snappy(),
    "lz4": kafka.codec.has_lz4(),
    "zstd": kafka.codec.has_zstd(),
}


def _broker_error(raised: KafkaError) -> Exception:
    return BrokerError(raised.errno, str(raised)) if isinstance(raised, BrokerResponseError) else raised


__all__ = [
    "ConfigResource",
    "ConfigResourceType",
    "KafkaPythonAdmin",
    "KafkaPythonClient",
    "OffsetSpec",
    "TopicPartition",
]


class KafkaPythonClient:
    name = "kafka-python"
    codecs = frozenset(codec for codec, present in _CODECS.items() if present)

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def producer(self, sending: Sending) -> KafkaProducer:
        return KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if sending.compression == "none" else sending.compression,
            acks={"all": -1}.get(sending.acks) or int(sending.acks),
            enable_idempotence=sending.idempotent,
            linger_ms=sending.linger_ms,
            max_request_size=sending.bytes_max,
            reconnect_backoff_max_ms=300,
        )

    def produce(
        self, topic: str, messages: Iterable[Message], sending: Sending = SENDING
    ) -> list[int | None]:
        producer = self.producer(sending)
        try:
            futures = [self._send(producer, topic, message) for message in messages]
            producer.flush(60)
            return [None if sending.acks == "0" else future.get(30).offset for future in futures]
        except KafkaError as raised:
            raise _broker_error(raised) from raised
        finally:
            producer.close(timeout=5)

    def _send(self, producer: KafkaProducer, topic: str, message: Message) -> Any:
        return producer.send(
            topic,
            value=message.value,
            key=message.key,
            headers=list(message.headers),
            partition=message.partition,
            timestamp_ms=message.timestamp_ms,
        )

    def consumer(self, reading: Reading) -> KafkaConsumer:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset=reading.reset,
            fetch_max_wait_ms=reading.wait_ms,
            request_timeout_ms=60_000,
            max_partition_fetch_bytes=reading.bytes_max,
        )

    def read(
        self, topic: str, count: int, offset: int = 0, partition: int = 0, reading: Reading = READING
    ) -> list[Message]:
        consumer = self.consumer(reading)
        try:
            where = TopicPartition(topic, partition)
            consumer.assign([where])
            consumer.seek(where, offset)
            received: list[Message] = []
            deadline = time.monotonic() + reading.timeout_s
            while len(received) < count and time.monotonic() < deadline:
                for records in consumer.poll(timeout_ms=100, max_records=count - len(received)).values():
                    received.extend(_received(record) for record in records)
            return received
        except BrokerResponseError as raised:
            raise _broker_error(raised) from raised
        finally:
            consumer.close()

    def offset_range(self, topic: str, partition: int = 0) -> tuple[int, int]:
        consumer = self.consumer(Reading())
        where = TopicPartition(topic, partition)
        try:
            return consumer.beginning_offsets([where])[where], consumer.end_offsets([where])[where]
        finally:
            consumer.close()

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        consumer = self.consumer(Reading())
        where = TopicPartition(topic, partition)
        try:
            answer = consumer.offsets_for_times({where: timestamp_ms})[where]
            return None if answer is None else int(answer.offset)
        finally:
            consumer.close()


def _received(record: Any) -> Message:
    return Message(
        record.value,
        record.key,
        tuple((name, value) for name, value in record.headers),
        record.timestamp,
        record.partition,
        record.offset,
        record.timestamp_type == 1,
    )


class KafkaPythonAdmin:
    def __init__(self, bootstrap: str) -> None:
        self.library = KafkaAdminClient(bootstrap_servers=bootstrap)

    def create_topic(
        self, topic: str, partitions: int = 1, replication: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        options = {"num_partitions": partitions, "replication_factor": replication, "configs": configs or {}}
        self._call(self.library.create_topics, {topic: options})

    def delete_topic(self, topic: str) -> None:
        self._call(self.library.delete_topics, [topic])

    def topics(self) -> set[str]:
        return set(self.library.list_topics())

    def partition_count(self, topic: str) -> int:
        return len(self.library.describe_topics([topic])[0]["partitions"])

    def add_partitions(self, topic: str, total: int) -> None:
        self._call(self.library.create_partitions, {topic: total})

    def topic_config(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        answer = self.library.describe_configs([resource], config_filter="all")
        return {name: entry["value"] for name, entry in answer["topic"][topic].items()}

    def replace_config(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(configs))
        result = self._call(self.library.alter_configs, [resource], raise_on_unknown=False, incremental=False)
        if error := re.match(r"\[Error (-?\d+)\]", str(result["topic"][topic])):
            raise BrokerError(int(error[1]), str(result))

    def delete_records(self, topic: str, before: int) -> int:
        where = TopicPartition(topic, 0)
        return int(self._call(self.library.delete_records, {where: before})[where]["low_watermark"])

    def cluster(self) -> ClusterView:
        answer = self.library.describe_cluster()
        nodes = {broker["broker_id"]: f"{broker['host']}:{broker['port']}" for broker in answer["brokers"]}
        return ClusterView(answer["cluster_id"], answer["controller_id"], nodes)

    def close(self) -> None:
        self.library.close()

    def _call(self, method: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except KafkaError as raised:
            raise _broker_error(raised) from raised
