"""Clients of four libraries over TLS: each writes values to a topic and reads them back."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError as AiokafkaError
from tests.clients.kafka_python_library import KafkaConsumer, KafkaError, KafkaProducer
from tests.support.certificates import Authority, Issued

from barnabas import Consumer, Producer, TopicPartition
from barnabas.errors import KafkaError as OwnError

# How long a client that cannot connect may try.
SECONDS_MAX = 6
BYTES_MAX = 2_000_000


class Files(NamedTuple):
    """What a client has: the authority that it trusts, and its own certificate, if any."""

    authority: str
    certificate: str | None = None
    key: str | None = None

    @property
    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority)
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


def client_files(directory: Path, authority: Authority, issued: Issued | None = None) -> Files:
    directory.mkdir(exist_ok=True)
    trusted = authority.write_pem(directory / "ca.pem")
    if issued is None:
        return Files(trusted)
    (directory / "client.crt").write_text(issued.chain_pem)
    (directory / "client.key").write_text(issued.key_pem())
    return Files(trusted, str(directory / "client.crt"), str(directory / "client.key"))


class Unreachable(Exception):
    """The library could not connect, or was not let in."""


# Write the values to the topic, and read as many from its beginning.
Copy = Callable[[str, Files, str, Sequence[bytes]], list[bytes]]


def confluent(bootstrap: str, files: Files, topic: str, values: Sequence[bytes]) -> list[bytes]:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": files.authority,
        "message.max.bytes": BYTES_MAX,
        "log_level": 0,
    }
    if files.certificate is not None:
        settings |= {"ssl.certificate.location": files.certificate, "ssl.key.location": files.key}
    producer = confluent_kafka.Producer({**settings, "message.timeout.ms": SECONDS_MAX * 1000})
    failures: list[Any] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error) if error else None)
    if producer.flush(3 * SECONDS_MAX) or failures:
        raise Unreachable(str(failures[:1]))
    consumer = confluent_kafka.Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
        messages: list[Any] = []
        while len(messages) < len(values):
            messages += consumer.consume(len(values) - len(messages), timeout=20)
        return [message.value() for message in messages]
    finally:
        consumer.close()


def kafka_python(bootstrap: str, files: Files, topic: str, values: Sequence[bytes]) -> list[bytes]:
    settings: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": files.authority,
        "ssl_certfile": files.certificate,
        "ssl_keyfile": files.key,
    }
    try:
        producer = KafkaProducer(
            **settings, max_request_size=BYTES_MAX, max_block_ms=SECONDS_MAX * 1000, bootstrap_timeout_ms=3000
        )
    except KafkaError as error:
        raise Unreachable(str(error)) from error
    try:
        for future in [producer.send(topic, value) for value in values]:
            future.get(20)
    except KafkaError as error:
        raise Unreachable(str(error)) from error
    finally:
        producer.close(timeout=5)
    consumer = KafkaConsumer(
        topic, **settings, auto_offset_reset="earliest", group_id=None, consumer_timeout_ms=20_000
    )
    try:
        return [message.value for _, message in zip(values, consumer, strict=False)]
    finally:
        consumer.close()


def aiokafka(bootstrap: str, files: Files, topic: str, values: Sequence[bytes]) -> list[bytes]:
    settings: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SSL",
        "ssl_context": files.context,
    }

    async def copy() -> list[bytes]:
        producer = AIOKafkaProducer(**settings, max_request_size=BYTES_MAX)
        try:
            await producer.start()
        except AiokafkaError as error:
            await producer.stop()
            raise Unreachable(str(error)) from error
        try:
            await asyncio.gather(*[await producer.send(topic, value) for value in values])
        finally:
            await producer.stop()
        async with AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest") as consumer:
            return [(await asyncio.wait_for(consumer.getone(), 20)).value for _ in values]

    return asyncio.run(copy())


def own(bootstrap: str, files: Files, topic: str, values: Sequence[bytes]) -> list[bytes]:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": files.authority,
    }
    if files.certificate is not None:
        settings |= {"ssl.certificate.location": files.certificate, "ssl.key.location": files.key}
    sending = {"max.request.size": BYTES_MAX, "max.block.ms": SECONDS_MAX * 1000}
    try:
        with Producer({**settings, **sending}) as producer:
            for future in [producer.send(topic, value) for value in values]:
                future.result(20)
    except OwnError as error:
        raise Unreachable(str(error)) from error
    with Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        records: list[bytes] = []
        while len(records) < len(values):
            records += [record.value for record in consumer.poll(20)]
        return records


CLIENTS: dict[str, Copy] = {
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "own": own,
}
