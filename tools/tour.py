"""`make run`: start a broker, drive it end to end with a foreign client, print what it did.

The broker runs in a process of its own; the client is confluent-kafka, which knows nothing of Barnabas."""

import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from rich.console import Console
from rich.progress import track
from rich.table import Table

from barnabas.testing import Broker

TOPIC = "orders"
PARTITIONS = 3
RECORDS = 30_000
console = Console()


def main() -> None:
    console.print("[bold]Barnabas[/bold]: one broker, driven by confluent-kafka\n")
    started = time.monotonic()
    with Broker({"num.partitions": "3"}, subprocess=True) as broker:
        step(f"broker on {broker.bootstrap}, answering after {time.monotonic() - started:.2f} s")
        create_topic(broker.bootstrap)
        produce(broker.bootstrap)
        checksum = consume(broker.bootstrap)
        broker.kill()
        broker.restart()
        step("killed the broker with kill -9 and started it again")
        if consume(broker.bootstrap) != checksum:
            raise SystemExit("the records after the kill differ from those before it")
        step("every acknowledged record is still there, in order")
        show_files(broker.data_dir)
    console.print(
        "\nThe broker is stopped and its data removed. Next: [bold].venv/bin/barnabas start --help[/bold]"
    )


def step(text: str) -> None:
    console.print(f"[green]✓[/green] {text}")


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(TOPIC, PARTITIONS, 1, config={"segment.bytes": str(1 << 20)})
    admin.create_topics([topic])[TOPIC].result()
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC)
    configs = admin.describe_configs([resource])[resource].result()
    step(f"created topic {TOPIC}: {PARTITIONS} partitions, {len(configs)} configs described")


def produce(bootstrap: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 5,
        }
    )
    failures: list[object] = []

    def delivered(error: object, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for number in track(range(RECORDS), "  producing", console=console, transient=True):
        retry_while_full(
            producer,
            lambda number=number: producer.produce(  # type: ignore[misc]
                TOPIC,
                key=f"customer-{number % 97}",
                value=f"order {number:06} " + "x" * 100,
                headers={"source": b"tour"},
                on_delivery=delivered,
            ),
        )
    producer.flush()
    if failures:
        raise SystemExit(f"{len(failures)} records were not delivered: {failures[0]}")
    step(f"produced {RECORDS:,} records: idempotent, lz4, keys and headers, all acknowledged")


def retry_while_full(producer: Producer, send: Callable[[], None]) -> None:
    producer.poll(0)
    while True:
        try:
            return send()
        except BufferError:
            producer.poll(0.1)


def consume(bootstrap: str) -> int:
    """Read every partition to its end; a sum that depends on order and content."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "tour", "enable.auto.commit": False})
    try:
        ends = [
            consumer.get_watermark_offsets(TopicPartition(TOPIC, index))[1] for index in range(PARTITIONS)
        ]
        consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
        seen, checksum = 0, 0
        last = [-1] * PARTITIONS
        while seen < sum(ends):
            for message in consumer.consume(10_000, 1.0):
                if message.error():
                    raise SystemExit(str(message.error()))
                partition, offset = message.partition(), message.offset()
                if offset != last[partition] + 1:
                    raise SystemExit(f"partition {partition}: offset {offset} came after {last[partition]}")
                last[partition] = offset
                checksum += (offset + 1) * sum(message.value()[:12]) + partition
                seen += 1
    finally:
        consumer.close()
    step(f"consumed {seen:,} records from {PARTITIONS} partitions, offsets without a gap")
    return checksum


def show_files(data_dir: Path) -> None:
    table = Table(title="On disk, in Kafka's own format", title_justify="left")
    table.add_column("file")
    table.add_column("bytes", justify="right")
    for path in sorted(data_dir.glob(f"{TOPIC}-0/*")):
        table.add_row(str(path.relative_to(data_dir)), f"{path.stat().st_size:,}")
    console.print(table)


if __name__ == "__main__":
    main()
