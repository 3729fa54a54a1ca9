"""A program as users write it. test_typing.py has mypy check it: what `reveal_type` shows, and that each line
with an `error` comment is refused for this reason."""

import json
from dataclasses import dataclass
from typing import Any, reveal_type

import barnabas
from barnabas import (
    Admin,
    AsyncConsumer,
    Consumer,
    ConsumerRecord,
    ConsumerWorkers,
    KafkaError,
    NewTopic,
    Producer,
    ProducerSettings,
    RebalanceListener,
    RecordFuture,
    RecordMetadata,
    TopicPartition,
)


@dataclass
class Order:
    total: float


def order_of(data: bytes) -> Order:
    return Order(**json.loads(data))


class Listener(RebalanceListener):
    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        print(partitions)


def sending(producer: Producer) -> None:
    reveal_type(producer.send("orders", b"1").result().offset)  # int
    futures: list[RecordFuture[RecordMetadata]] = [producer.send("orders", b"1", partition=0)]
    print(futures[0].result().offset)
    producer.send("orders", b"1", partitions=0)  # error: Unexpected keyword argument "partitions"


def settings() -> None:
    Producer(bootstrap_servers="localhost:9092", linger_ms=5, acks=1)
    Producer(
        {"bootstrap.servers": "localhost:9092"}, value_serializer=lambda order: json.dumps(order).encode()
    )
    given: ProducerSettings = {"bootstrap_servers": ["a:1", "b:2"], "compression_type": "zstd"}
    Producer(**given)
    Producer(bootstrap_server="localhost:9092")  # error: Unexpected keyword argument "bootstrap_server"
    Producer(linger_ms="soon")  # error: Argument "linger_ms" to "Producer" has incompatible type "str"
    Producer(group_id="g")  # error: Unexpected keyword argument "group_id"
    Consumer(group_id="g", enable_auto_commit="no")  # error: Argument "enable_auto_commit" to "Consumer"
    Admin(bootstrap_servers="localhost:9092").create_topics([NewTopic("orders", partitions=3)])


def reading() -> None:
    plain = Consumer(bootstrap_servers="localhost:9092", group_id="kitchen")
    plain.subscribe(["orders"], Listener())
    reveal_type(plain)  # Consumer[bytes, bytes]
    for record in plain.poll(1.0):
        reveal_type(record.value)  # bytes | None
    decoded = Consumer(bootstrap_servers="localhost:9092", value_deserializer=order_of)
    reveal_type(decoded)  # Consumer[bytes, Order]
    for order in decoded:
        reveal_type(order.value)  # Order | None
        print(total_of(order))
    reveal_type(Consumer({}, key_deserializer=bytes.decode).poll())  # ConsumerRecords[str, bytes]
    named: Consumer[Any, Order] = Consumer({"value.deserializer": order_of})
    reveal_type(named.poll().records("orders"))  # list[ConsumerRecord[Any, Order]]
    ConsumerWorkers(total_of, group_id="till", value_deserializer=order_of)


def total_of(record: ConsumerRecord[bytes, Order]) -> float:
    return 0.0 if record.value is None else record.value.total


async def awaiting() -> None:
    consumer = AsyncConsumer(bootstrap_servers="localhost:9092", value_deserializer=order_of)
    async for record in consumer:
        reveal_type(record.value)  # Order | None


def failing(error: KafkaError) -> None:
    reveal_type(error.retriable)  # bool
    print(barnabas.NoSuchName)  # error: Module has no attribute "NoSuchName"
