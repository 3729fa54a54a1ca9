"""aiokafka with the interface of the suite: each call runs its own event loop."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import BrokerResponseError
from tests.clients.client import CODECS, READING, SENDING, BrokerError, ClusterView, Message, Reading, Sending

T = TypeVar("T")


def _run(work: Callable[[], Awaitable[T]]) -> T:
    async def guarded() -> T:
        try:
            return await work()
        except BrokerResponseError as raised:
            raise BrokerError(raised.errno, str(raised)) from raised

    return asyncio.run(guarded())


class AiokafkaClient:
    name = "aiokafka"
    codecs = frozenset(CODECS)

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def produce(
        self, topic: str, messages: Iterable[Message], sending: Sending = SENDING
    ) -> list[int | None]:
        async def work() -> list[int | None]:
            async with self._producer(sending) as producer:
                futures = []
                for message in messages:
                    futures.append(await self._send(producer, topic, message))
                    await asyncio.sleep(0)
                results = await asyncio.gather(*futures)
                return [None if sending.acks == "0" else result.offset for result in results]

        return _run(work)

    def _producer(self, sending: Sending) -> AIOKafkaProducer:
        return AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if sending.compression == "none" else sending.compression,
            acks="all" if sending.acks == "all" else int(sending.acks),
            enable_idempotence=sending.idempotent,
            linger_ms=sending.linger_ms,
            max_request_size=sending.bytes_max,
            request_timeout_ms=10_000,
        )

    async def _send(self, producer: AIOKafkaProducer, topic: str, message: Message) -> Any:
        return await producer.send(
            topic,
            value=message.value,
            key=message.key,
            headers=list(message.headers),
            partition=message.partition,
            timestamp_ms=message.timestamp_ms,
        )

    def _consumer(self, reading: Reading) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
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
        async def work() -> list[Message]:
            async with self._consumer(reading) as consumer:
                where = TopicPartition(topic, partition)
                consumer.assign([where])
                consumer.seek(where, offset)
                received: list[Message] = []
                deadline = time.monotonic() + reading.timeout_s
                while len(received) < count and time.monotonic() < deadline:
                    answer = await consumer.getmany(timeout_ms=100, max_records=count - len(received))
                    received.extend(_received(record) for records in answer.values() for record in records)
                return received

        return _run(work)

    def offset_range(self, topic: str, partition: int = 0) -> tuple[int, int]:
        async def work() -> tuple[int, int]:
            async with self._consumer(Reading()) as consumer:
                where = TopicPartition(topic, partition)
                begin = await consumer.beginning_offsets([where])
                end = await consumer.end_offsets([where])
                return begin[where], end[where]

        return _run(work)

    def offset_for_time(self, topic: str, timestamp_ms: int, partition: int = 0) -> int | None:
        async def work() -> int | None:
            async with self._consumer(Reading()) as consumer:
                where = TopicPartition(topic, partition)
                answer = (await consumer.offsets_for_times({where: timestamp_ms}))[where]
                return None if answer is None else int(answer.offset)

        return _run(work)


def _received(record: Any) -> Message:
    return Message(
        record.value,
        record.key,
        tuple(record.headers),
        record.timestamp,
        record.partition,
        record.offset,
        record.timestamp_type == 1,
    )


def _checked(code: int, text: str | None) -> None:
    if code:
        raise BrokerError(code, text or "")


class AiokafkaAdmin:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def _with(self, work: Callable[[AIOKafkaAdminClient], Awaitable[T]]) -> T:
        async def connected() -> T:
            library = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await library.start()
            try:
                return await work(library)
            finally:
                await library.close()

        return _run(connected)

    def create_topic(
        self, topic: str, partitions: int = 1, replication: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partitions, replication, topic_configs=dict(configs or {}))
        response = self._with(lambda library: library.create_topics([new]))
        _, code, text = response.topic_errors[0]
        _checked(code, text)

    def delete_topic(self, topic: str) -> None:
        response = self._with(lambda library: library.delete_topics([topic]))
        _checked(response.topic_error_codes[0][1], None)

    def topics(self) -> set[str]:
        return set(self._with(lambda library: library.list_topics()))

    def partition_count(self, topic: str) -> int:
        return len(self._with(lambda library: library.describe_topics([topic]))[0]["partitions"])

    def add_partitions(self, topic: str, total: int) -> None:
        self._with(lambda library: library.create_partitions({topic: NewPartitions(total)}))

    def topic_config(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        response = self._with(lambda library: library.describe_configs([resource]))[0]
        code, text, _, _, entries = response.resources[0]
        _checked(code, text)
        return {entry[0]: entry[1] for entry in entries}

    def replace_config(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(configs))
        response = self._with(lambda library: library.alter_configs([resource]))[0]
        code, text, *_ = response.resources[0]
        _checked(code, text)

    def delete_records(self, topic: str, before: int) -> int:
        where = TopicPartition(topic, 0)
        requested = {where: RecordsToDelete(before_offset=before)}
        return int(self._with(lambda library: library.delete_records(requested))[where])

    def cluster(self) -> ClusterView:
        answer = self._with(lambda library: library.describe_cluster())
        nodes = {broker["node_id"]: f"{broker['host']}:{broker['port']}" for broker in answer["brokers"]}
        return ClusterView(answer["cluster_id"], answer["controller_id"], nodes)

    def close(self) -> None:
        """Nothing to do: every call opens and closes its own client."""
